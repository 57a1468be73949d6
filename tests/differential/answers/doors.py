#!/usr/bin/env python3
"""doors.py nvrtc|hiprtc TABLES KILN LIBEXEC LIBRARY [FAKE] [--all]: each option and variable of src's tables through all ways
by which kiln serves the compiler: its runtime, the drop-in call, the library of `kiln exec`, and a replay of what that recorded. They
must agree whether a compile has the same key as one without the option, another, or bypasses the cache. The compiler is an installed
one; of NVRTC also the fake one that is named, which is slower and gets fewer. Without --all each option in one of its spellings, by the seed that
is printed ($KILN_TEST_SEED)."""
import ctypes
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parents[2] / "python"))


class Nvrtc:
    """What the doors of one compiler are asked. `slow`: each compile takes half a second, so of the options that are only keyed
    few are drawn. `dies`: some options end the process."""
    name, backend, language, source, slow, dies = "nvrtc", "cuda", "cuda", "k.cu", False, False
    row = re.compile(r'^KN_NVRTC_OPTION\("([^"]+)", (\w+), (\w+), \w+\)', re.M)
    most, lasting = 80, ("restrict",)
    base = ["--gpu-architecture=compute_90"]
    target = re.compile(r"^(-arch|--gpu-architecture)=?")
    directory = re.compile(r"^(-I|--include-path)=?")
    text = '#if __has_include("w.h")\n#include "w.h"\n#endif\nextern "C" __global__ void k(int *x) { *x = 1; }\n'
    values = {"D": "X=1", "define-macro": "X=1", "U": "X", "undefine-macro": "X", "gpu-architecture": "compute_80", "arch": "compute_80",
              "std": "c++17", "maxrregcount": "32", "split-compile": "1", "jump-table-density": "10", "jtd": "10", "Ofast-compile": "max",
              "Ofc": "max", "dopt": "on", "diag-error": "20", "diag-warn": "20", "diag-suppress": "20", "Xptxas": "-O1", "ptxas-options": "-O1",
              "frandom-seed": "1", "optimization-info": "inline", "opt-info": "inline", "I": "inc", "include-path": "inc"}
    variables = {"NV_NVVM_VERSION": "nvvm-latest", "NVRTC_PREPEND_FLAGS": "-DX=1", "NVRTC_APPEND_FLAGS": "-DX=1"}
    #: What is as if it were not set.
    unset = {"NVRTC_APPEND_FLAGS": ("",)}
    refused = ("CARRIES_NAME", "REFUSED")

    def __init__(self, libexec, library, fake):
        from compilers import Absent, find_library
        self.fake = False
        try:
            self.real = find_library("libnvrtc", 13, 12)
        except Absent:
            self.real, self.fake = os.path.realpath(fake), True
        major = re.search(r"\.so\.(\d+)", self.real).group(1)
        self.front = f"{libexec}/nvrtc/{major}/libnvrtc.so.{major}"
        self.env = {"KILN_NVRTC_LIBRARY": self.real, "CUDA_PATH": str(Path(self.real).parents[1]),
                    "LD_LIBRARY_PATH": f"{Path(self.real).parent}:{library}"}

    @classmethod
    def spellings(cls, name, form, use):
        """As programs write it. The compiler refuses some, the same for all."""
        value = cls.values.get(name, "true")
        dashes = {"I": ("-",), "arch": ("-",), "include-path": ("--",), "gpu-architecture": ("--",)}.get(name, ("-", "--"))
        for dash in dashes:
            if form in ("FLAG", "ANY"):
                yield [dash + name]
            if form in ("JOINED", "VALUE", "LETTER", "LIST", "ANY"):
                yield [f"{dash}{name}={value}"]
            if form in ("VALUE", "LETTER", "LIST"):
                yield [dash + name, value]
            if form == "LETTER":
                yield [dash + name + value]
            if use == "DIRECTORY":
                yield from ([dash + name, f" {value}"], [f"{dash}{name}={value} "])

    @staticmethod
    def options(words, use):
        """A compile's options, of which the row's are a part."""
        return words if use == "TARGET" else Nvrtc.base + words

    @staticmethod
    def dropin(kiln, cache, options):
        import kiln.nvrtc
        return kiln.nvrtc.compile(Nvrtc.text, options, name=Nvrtc.source, cache=cache).origin


class Hiprtc:
    name, backend, language, source, slow, dies = "hiprtc", "hip", "hip", "k.hip", True, True
    row = re.compile(r'^KN_HIPRTC_OPTION\("([^"]*)", (\w+), (\w+), \w+\)', re.M)
    most, lasting = 80, ()
    base = ["--offload-arch=gfx90a"]
    target = re.compile(r"^--(offload-arch|gpu-architecture)=")
    directory = re.compile(r"^-I")
    text = '#include "w.h"\nextern "C" __global__ void k(int *x) { *x = OTHER; }\n'
    values = {"-D": "X=1", "-U": "X", "-std=": "c++17", "--std=": "c++17", "-ffp-contract=": "off", "-fdenormal-fp-math=": "ieee",
              "-ferror-limit=": "3", "-W": "all", "-I": "inc", "-X": "clang", "-mllvm": "=-amdgpu-early-inline-all", "-isystem": "inc",
              "-iquote": "inc", "-idirafter": "inc", "--include-directory": "=inc", "-include": "base/w.h", "--include": "=base/w.h",
              "-imacros": "base/w.h", "-Wl,": "--strip-all", "-Wa,": "--noexecstack", "-Wp,": "-DX=1", "-M": "D", "-ftime-trace": "",
              "-emit-llvm": "", "-save-temps": "=obj", "--save-temps": "=obj"}
    variables = {"HIPRTC_COMPILE_OPTIONS_APPEND": "-DX=1"}
    unset = {"AMD_COMGR_SAVE_TEMPS": ("", "0"), "AMD_COMGR_EMIT_VERBOSE_LOGS": ("0",)}
    refused = ("REFUSED", "BITCODE", "NAMES_TARGET")

    def __init__(self, libexec, library, fake):
        self.real, self.fake = "/usr/lib/x86_64-linux-gnu/libamdhip64.so.5", False
        self.front = f"{libexec}/hip/5/libkiln-hiprtc.so.5"
        self.env = {"KILN_HIP_LIBRARY": self.real, "LD_LIBRARY_PATH": f"{Path(self.real).parent}:{library}"}

    @classmethod
    def spellings(cls, name, form, use):
        value = cls.values.get(name, "gfx908" if use in ("TARGET", "NAMES_TARGET") else "x")
        if form in ("EXACT", "BEGINS"):
            yield [name]
        if form != "EXACT":
            yield [name + value]
        if form in ("LETTER", "BEGINS") or (form == "JOINED" and use != "TARGET"):  # hipRTC dies of an empty target
            yield [name, value]
        if form == "EXACT" and name:
            yield from ([f" {name}"], [f"{name}x"])
        if use == "DIRECTORY":
            yield from ([name, f" {value}"], [f"{name}={value}"])
        if use in ("DIRECTORY", "TARGET"):
            yield [f"{name}{value} "]

    @staticmethod
    def options(words, use):
        """The row's directory is before that of all."""
        return words + ["-Ibase"] + (Hiprtc.base if use != "TARGET" else [])

    @staticmethod
    def dropin(kiln, cache, options):
        from kiln import _structs
        from kiln.blob import _ORIGINS
        from kiln.errors import check
        from kiln.source import strings

        class Result(ctypes.Structure):
            _fields_ = [("struct_size", ctypes.c_size_t), ("code", ctypes.c_void_p), ("size", ctypes.c_size_t), ("log", ctypes.c_char_p),
                        ("lowered", ctypes.c_void_p), ("lowered_count", ctypes.c_size_t), ("origin", ctypes.c_int)]
        request = _structs.NvrtcRequest(ctypes.sizeof(_structs.NvrtcRequest), Hiprtc.text.encode(), Hiprtc.source.encode())
        request.options, request.option_count = strings(options)
        diag, out = _structs.Diag(), ctypes.POINTER(Result)()
        lib = ctypes.CDLL("libkiln.so.0")  # the module has no call for HIP
        lib.kiln_hiprtc_compile.argtypes = [ctypes.c_void_p] * 4
        lib.kiln_hiprtc_result_destroy.argtypes = [ctypes.c_void_p]
        with cache._handle as handle:
            status = lib.kiln_hiprtc_compile(handle, *map(ctypes.addressof, (request, out, diag)))
        check(status, diag)
        origin = _ORIGINS.get(out.contents.origin, "unknown")
        lib.kiln_hiprtc_result_destroy(ctypes.addressof(out.contents))
        return origin


FAMILIES = {"nvrtc": Nvrtc, "hiprtc": Hiprtc}
VARIABLE = r'^KN_VARIABLE\({}, "(\w+)", (\w+), '


class Door:
    """`answer` compiles once and says where the result came from."""

    def kind(self, options, use):
        """By two compiles: the first is new if its key is, and the second is not if the first was stored."""
        first, second = self.answer(options, use), self.answer(options, use)
        if "failed" in (first, second):
            return "failed"
        return "same" if first != "compiled" else "differs" if second != "compiled" else "bypassed"


class Exec(Door):
    def __init__(self, family, front, report):
        import worker
        self.family, self.compiler, self.report = family, worker.Compiler(front, family.name), Path(report)

    def answer(self, options, use):
        self.report.write_text("")
        said = self.compiler.compile({"text": self.family.text, "name": self.family.source, "options": options})
        rows = [line.split("\t")[1] for line in self.report.read_text().splitlines()]
        return "failed" if said["compile"] != 0 else rows[0].replace("bypassed", "compiled")


class DropIn(Door):
    def __init__(self, family, root):
        import kiln
        self.family, self.kiln, self.cache = family, kiln, kiln.Cache(root)

    def answer(self, options, use):
        try:
            return self.family.dropin(self.kiln, self.cache, options)
        except self.kiln.Error:
            return "failed"


class Runtime(Door):
    """A target, and a directory that is one for all, are not among a source's options."""

    def __init__(self, family, root):
        import kiln
        self.family, self.kiln = family, kiln
        self.runtime = kiln.Runtime(backend=family.backend, cache=kiln.Cache(root), compile_only=True)

    def answer(self, options, use):
        family, target, directories, rest = self.family, self.family.base[0], [], []
        forms = {"DIRECTORY": family.directory, "TARGET": family.target}
        words = iter(options)
        for word in words:
            form = family.target if word in family.base else family.directory if word == "-Ibase" else forms.get(use)
            found = form.match(word) if form else None
            value = word[found.end():] or next(words, "") if found else ""
            if not found or value != value.strip() or value.startswith("="):
                rest += [word] + ([value] if found and word[found.end():] == "" else [])
            elif form is family.directory:
                directories.append(value)
            else:
                target = value
        source = self.kiln.Source(family.language, family.text, name=family.source, options=tuple(rest), include_dirs=tuple(directories))
        try:
            return self.runtime.compile(f"{family.backend}:{self.family.target.sub('', target)}", source).origin
        except self.kiln.Error:
            return "failed"


def open_doors(request, family):
    doors = {"exec": Exec(family, request["front"], request["report"])}
    if not request["replayed"]:
        doors.update(dropin=DropIn(family, request["roots"]["dropin"]), runtime=Runtime(family, request["roots"]["runtime"]))
    return doors


def in_child(work):
    """What `work` gives in a child, or None if the child dies."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        with os.fdopen(write, "w") as out:
            out.write(json.dumps(work()))
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        said = answer.read()
    return json.loads(said) if os.waitpid(child, 0)[1] == 0 else None


def dies_alone(family, options):
    """Without kiln. What its heap is like decides, so it is asked some times."""
    def compile_alone():
        import worker
        return worker.Compiler(family.real, family.name).compile({"text": family.text, "name": family.source, "options": options})["compile"]
    return any(in_child(compile_alone) is None for _ in range(5))


def ask_doors(request, family, doors, options, use):
    """Of a compiler that may die, each in a child of its own."""
    def ask():
        return {name: door.kind(options, use) for name, door in (doors or open_doors(request, family)).items()}
    kinds = ask() if doors else in_child(ask)
    if kinds is not None:
        return kinds
    if not dies_alone(family, options):
        sys.exit(f"with kiln alone hipRTC dies of {options}")
    return {"exec": "died", "dropin": "died", "runtime": "died"}


def play(request):
    """In a process of its own: the doors' answers for some options, in this environment."""
    os.chdir(request["folder"])
    family = FAMILIES[request["family"]]
    doors = None if family.dies else open_doors(request, family)
    os.environ.update(request["variables"])
    print(json.dumps([ask_doors(request, family, doors, options, use) for options, use in request["options"]]))


class Suite:
    def __init__(self, root, arguments):
        self.seed = int(os.environ.get("KILN_TEST_SEED", time.time_ns() % 10**6))
        name, *paths = (arguments + [""])[:6]
        self.tables, self.kiln, libexec, library, fake = (os.path.abspath(path) for path in paths)
        self.family = FAMILIES[name](libexec, Path(library).resolve().parent, fake)
        self.all = "--all" in arguments
        if not os.path.exists(self.family.real):
            print(f"SKIP {self.family.backend}: no {name}")
            sys.exit(77)
        self.root = Path(root)
        for folder, value in (("inc", 1), ("base", 2)):
            (self.root / folder).mkdir()
            (self.root / folder / "w.h").write_text(f"#define OTHER {value}\n")
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("KILN_", "NV", "LLVM", "EDG", "LD_", "HIP", "ROCM", "AMD_"))}
        self.env.update(KILN_CACHE_DIR=str(self.root / "exec"), KILN_LIBEXEC=libexec,
                        KILN_EXEC_REPORT=str(self.root / "report"), KILN_KEEP_SOURCES="1", **self.family.env)

    def ask(self, options, replayed=False, **variables):
        request = {"family": self.family.name, "folder": str(self.root), "front": self.family.front, "report": str(self.root / "report"),
                   "replayed": replayed, "options": options, "variables": variables,
                   "roots": {name: str(self.root / name) for name in ("dropin", "runtime")}}
        env = {**self.env, **({"KILN_CACHE_DIR": str(self.root / "replayed")} if replayed else {})}
        done = subprocess.run([sys.executable, "-X", "faulthandler", __file__, "--play"], env=env, input=json.dumps(request), capture_output=True,
                              text=True, check=False, timeout=6000 if self.all else 250)
        if done.returncode != 0:
            sys.exit(f"a process ended with {done.returncode}: {done.stderr[-3000:]}")
        return json.loads(done.stdout.splitlines()[-1])

    def rows(self):
        """Options that stay in force in their process come last, as what is refused may end a compiler."""
        family = self.family
        table = family.row.findall(next(Path(self.tables).rglob(f"{family.name}_options.def")).read_text())
        if len(table) < family.most:
            sys.exit(f"only {len(table)} rows were read")
        draw = random.Random(self.seed)
        rows = [("D", "LETTER", "KEYED", ["-DX=1"])]
        for name, form, use in table:
            words = list(family.spellings(name, form, use))
            if not self.all:
                few = (family.fake or family.slow) and use in ("KEYED", "LINES")
                words = [draw.choice(words)] if not few or draw.random() < 0.05 else []
            rows += [(name, form, use, one) for one in words]
        return sorted(rows, key=lambda row: row[0] in family.lasting)


def agree(family, kinds, name, use):
    """What may be another in `kiln exec`: a target's spelling is in its keys, and -restrict reaches the NVRTC of the program,
    whose later compiles it changes. The others have no output for bitcode alone, and put options of their own last."""
    others = {kinds[door] for door in kinds if door != "exec"}
    if use == "BITCODE" and kinds["exec"] == "differs":
        others.discard("bypassed")
    if use in family.refused:
        others.discard("failed")
    if use == "TARGET" and others == {"same"}:
        others = {kinds["exec"]} - {"bypassed", "failed"}
    if name == "restrict" and kinds["exec"] == "bypassed":
        others.discard("differs")
    return others <= {kinds["exec"]}


def check_options(suite):
    rows = suite.rows()
    full = [[suite.family.options([], ""), ""]] + [[suite.family.options(words, use), use] for _, _, use, words in rows]
    found = suite.ask(full)
    wrong = []
    counts = {}
    for (name, _, use, words), kinds in zip(rows, found[1:]):
        counts[kinds["exec"]] = counts.get(kinds["exec"], 0) + 1
        if not agree(suite.family, kinds, name, use):
            wrong.append(f"{' '.join(words)}: {kinds}")
    if wrong:
        sys.exit(f"the doors do not agree (seed {suite.seed}):\n  " + "\n  ".join(wrong))
    if min(counts.get(kind, 0) for kind in ("differs", "bypassed")) < 1:
        sys.exit(f"too few of a kind: {counts}")
    print(f"ok: seed {suite.seed}: {len(rows)} spellings of options through three doors: {counts}")
    return full, found


def check_replay(suite, full, found):
    """What was recorded and is made again has the keys that a program asks for."""
    recording, replayed = suite.root / "exec/recording", suite.root / "replayed"
    done = subprocess.run([suite.kiln, "warm", str(recording), "--cache-dir", str(replayed), "--json", "-j2"], env=suite.env, cwd=suite.root,
                          capture_output=True, text=True, check=False, timeout=6000 if suite.all else 280)
    for path in suite.root.iterdir():
        if path.is_file():
            path.unlink()  # -create-pch=X leaves an X, which -use-pch=X would find now
    again = suite.ask(full, replayed=True)
    wrong = []
    for (options, use), before, after in zip(full, found, again):
        wanted = {"differs": "same"}.get(before["exec"], before["exec"])
        # Where the code names files, `kiln warm` says that it made another key. A compiler that dies need not die each time.
        if after["exec"] != wanted and use not in ("LINES", "CARRIES_NAME") and "died" not in (wanted, after["exec"]):
            wrong.append(f"{options}: {before['exec']} before, and {after['exec']} after the replay")
    if wrong:
        sys.exit("a replay has other keys:\n  " + "\n  ".join(wrong) + f"\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    print(f"ok: {len(again)} replayed")


def check_variables(suite):
    """What is keyed makes another key; all others bypass."""
    family, base = suite.family, [[suite.family.options([], ""), ""]]
    names = re.findall(VARIABLE.format(family.name.upper()), (Path(suite.tables) / "compilers/variables.def").read_text(), re.M)
    if len(names) < 8:
        sys.exit(f"only {len(names)} variables were read")
    for name, use in names:
        kinds = suite.ask(base, **{name: family.variables.get(name, "1")})[0]
        if set(kinds.values()) != {"differs" if use == "KEYED" else "bypassed"}:
            sys.exit(f"{name}: {kinds}")
    for name, value in [(name, value) for name, values in family.unset.items() for value in values]:
        kinds = suite.ask(base, **{name: value})[0]
        if set(kinds.values()) != {"same"}:
            sys.exit(f"{name}={value}: {kinds}")
    print(f"ok: {len(names)} variables")


def main():
    if sys.argv[1] == "--play":
        return play(json.loads(sys.stdin.read()))
    with tempfile.TemporaryDirectory(prefix="kiln-doors-") as root:
        suite = Suite(os.path.realpath(root), sys.argv[1:])
        full, found = check_options(suite)
        check_variables(suite)
        if not suite.family.fake:  # a minute of a C compiler
            check_replay(suite, full, found)
    return None


if __name__ == "__main__":
    main()
