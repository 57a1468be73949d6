#!/usr/bin/env python3
"""doors.py TABLES KILN LIBEXEC LIBRARY [NVRTC] [--all]: each option and variable of src/compilers' tables through all ways by which
kiln serves NVRTC: its runtime, the drop-in call, the library of `kiln exec`, and a replay of what that recorded. They must
agree whether a compile has the same key as one without the option, another, or bypasses the cache. NVRTC is a toolkit's, or
the fake one that is named, which is slower and gets fewer. Without --all each option in one of its spellings, by the seed that
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
ROW = re.compile(r'^KN_NVRTC_OPTION\("([^"]+)", (\w+), (\w+), \w+\)', re.M)
VARIABLE = re.compile(r'^KN_VARIABLE\(NVRTC, "(\w+)", (\w+), ', re.M)
VALUES = {"D": "X=1", "define-macro": "X=1", "U": "X", "undefine-macro": "X", "gpu-architecture": "compute_80", "arch": "compute_80",
          "std": "c++17", "maxrregcount": "32", "split-compile": "1", "jump-table-density": "10", "jtd": "10", "Ofast-compile": "max",
          "Ofc": "max", "dopt": "on", "diag-error": "20", "diag-warn": "20", "diag-suppress": "20", "Xptxas": "-O1", "ptxas-options": "-O1",
          "frandom-seed": "1", "optimization-info": "inline", "opt-info": "inline", "I": "inc", "include-path": "inc"}
TEXT = '#if __has_include("w.h")\n#include "w.h"\n#endif\nextern "C" __global__ void k(int *x) { *x = 1; }\n'
BASE = "--gpu-architecture=compute_90"


def spellings(name, form, use):
    """As programs write it. The compiler refuses some, the same for all."""
    value = VALUES.get(name, "true")
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


class Door:
    """`answer` compiles once and says where the result came from."""

    def kind(self, options, use):
        """By two compiles: the first is new if its key is, and the second is not if the first was stored."""
        first, second = self.answer(options, use), self.answer(options, use)
        if "failed" in (first, second):
            return "failed"
        return "same" if first != "compiled" else "differs" if second != "compiled" else "bypassed"


class Exec(Door):
    def __init__(self, front, report):
        import worker
        self.compiler, self.report = worker.Compiler(front, "nvrtc"), Path(report)

    def answer(self, options, use):
        self.report.write_text("")
        said = self.compiler.compile({"text": TEXT, "name": "k.cu", "options": options})
        rows = [line.split("\t")[1] for line in self.report.read_text().splitlines()]
        return "failed" if said["compile"] != 0 else rows[0].replace("bypassed", "compiled")


class DropIn(Door):
    def __init__(self, root):
        import kiln
        import kiln.nvrtc
        self.kiln, self.cache = kiln, kiln.Cache(root)

    def answer(self, options, use):
        try:
            return self.kiln.nvrtc.compile(TEXT, options, name="k.cu", cache=self.cache).origin
        except self.kiln.Error:
            return "failed"


class Runtime(Door):
    def __init__(self, root):
        import kiln
        self.kiln = kiln
        self.runtime = kiln.Runtime(backend="cuda", cache=kiln.Cache(root), compile_only=True)

    def answer(self, options, use):
        target, directories, rest = BASE, (), [word for word in options if word != BASE]
        value = re.sub(r"^(-I|--include-path|-arch|--gpu-architecture)=?", "", rest[-1]) if rest else ""
        if use == "TARGET":
            target, rest = value, []
        elif use == "DIRECTORY" and value == value.strip():
            directories, rest = (value,), []
        source = self.kiln.Source("cuda", TEXT, name="k.cu", options=tuple(rest), include_dirs=directories)
        try:
            return self.runtime.compile("cuda:" + target.rsplit("=", 1)[-1], source).origin
        except self.kiln.Error:
            return "failed"


def play(request):
    """In a process of its own: the doors' answers for some options, in this environment."""
    os.chdir(request["folder"])
    doors = {"exec": Exec(request["front"], request["report"])}
    if not request["replayed"]:
        doors.update(dropin=DropIn(request["roots"]["dropin"]), runtime=Runtime(request["roots"]["runtime"]))
    os.environ.update(request["variables"])
    found = []
    for options, use in request["options"]:
        kinds = {name: door.kind(options, use) for name, door in doors.items()}
        found.append(kinds)
    print(json.dumps(found))


class Suite:
    def __init__(self, root, arguments):
        from compilers import Absent, find_library
        self.seed, self.fake = int(os.environ.get("KILN_TEST_SEED", time.time_ns() % 10**6)), False
        self.tables, self.kiln, libexec, library = (os.path.abspath(path) for path in arguments[:4])
        try:
            self.real = find_library("libnvrtc", 13, 12)
        except Absent:
            if len(arguments) < 5 or not os.path.exists(arguments[4]):
                print("SKIP cuda: no NVRTC")
                sys.exit(77)
            self.real, self.fake = os.path.realpath(arguments[4]), True
        major = re.search(r"\.so\.(\d+)", self.real).group(1)
        self.root = Path(root)
        (self.root / "inc").mkdir()
        (self.root / "inc/w.h").write_text("#define OTHER 1\n")
        self.front = os.path.abspath(f"{libexec}/nvrtc/{major}/libnvrtc.so.{major}")
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("KILN_", "NV", "LLVM", "EDG", "LD_"))}
        self.env.update(KILN_CACHE_DIR=str(self.root / "exec"), KILN_NVRTC_LIBRARY=self.real, KILN_LIBEXEC=os.path.abspath(libexec),
                        KILN_EXEC_REPORT=str(self.root / "report"), KILN_KEEP_SOURCES="1",
                        CUDA_PATH=str(Path(self.real).parents[1]), LD_LIBRARY_PATH=f"{Path(self.real).parent}:{Path(library).resolve().parent}")

    def ask(self, options, replayed=False, **variables):
        request = {"folder": str(self.root), "front": self.front, "report": str(self.root / "report"), "replayed": replayed,
                   "options": options, "variables": variables,
                   "roots": {name: str(self.root / name) for name in ("dropin", "runtime")}}
        env = {**self.env, **({"KILN_CACHE_DIR": str(self.root / "replayed")} if replayed else {})}
        done = subprocess.run([sys.executable, __file__, "--play"], env=env, input=json.dumps(request), capture_output=True,
                              text=True, check=False, timeout=250)
        if done.returncode != 0:
            sys.exit(f"a process ended with {done.returncode}: {done.stderr[-3000:]}")
        return json.loads(done.stdout.splitlines()[-1])

    def rows(self):
        """-restrict stays in force in its process, and what is refused may end a compiler: last."""
        table = ROW.findall((Path(self.tables) / "nvrtc_options.def").read_text())
        if len(table) < 80:
            sys.exit(f"only {len(table)} rows were read")
        draw = random.Random(self.seed)
        rows = []
        for name, form, use in table:
            words = list(spellings(name, form, use))
            if "--all" not in sys.argv:
                words = [draw.choice(words)] if not self.fake or use != "KEYED" or draw.random() < 0.05 else []
            rows += [(name, form, use, one) for one in words]
        return sorted(rows, key=lambda row: row[0] == "restrict")


def agree(kinds, name, use):
    """What may be another in `kiln exec`: a target's spelling is in its keys, and -restrict reaches the NVRTC of the program,
    whose later compiles it changes. The others have no output for bitcode alone, and put options of their own last."""
    others = {kinds[door] for door in kinds if door != "exec"}
    if use in ("CARRIES_NAME", "REFUSED"):
        others.discard("failed")
    if use == "TARGET" and others == {"same"}:
        others = {kinds["exec"]} - {"bypassed", "failed"}
    if name == "restrict" and kinds["exec"] == "bypassed":
        others.discard("differs")
    return others <= {kinds["exec"]}


def check_options(suite):
    rows = suite.rows()
    full = [[[BASE], ""]] + [[(words if use == "TARGET" else [BASE] + words), use] for _, _, use, words in rows]
    found = suite.ask(full)
    wrong = []
    counts = {}
    for (name, _, use, words), kinds in zip(rows, found[1:]):
        counts[kinds["exec"]] = counts.get(kinds["exec"], 0) + 1
        if not agree(kinds, name, use):
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
                          capture_output=True, text=True, check=False, timeout=280)
    again = suite.ask(full, replayed=True)
    wrong = []
    for (options, use), before, after in zip(full, found, again):
        wanted = {"differs": "same"}.get(before["exec"], before["exec"])
        # Where the code names files, `kiln warm` says that it made another key.
        if after["exec"] != wanted and use not in ("LINES", "CARRIES_NAME"):
            wrong.append(f"{options}: {before['exec']} before, and {after['exec']} after the replay")
    if wrong:
        sys.exit("a replay has other keys:\n  " + "\n  ".join(wrong) + f"\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    print(f"ok: {len(again)} replayed")


def check_variables(suite):
    names = VARIABLE.findall((Path(suite.tables) / "variables.def").read_text())
    for name, use in names:
        value = {"NV_NVVM_VERSION": "nvvm-latest"}.get(name, "-DX=1" if use == "OPTIONS" else "1")
        kinds = suite.ask([[[BASE], ""]], **{name: value})[0]
        if set(kinds.values()) != {"bypassed"}:
            sys.exit(f"{name}: {kinds}")
    empty = suite.ask([[[BASE], ""]], NVRTC_APPEND_FLAGS="")[0]
    if set(empty.values()) != {"same"}:
        sys.exit(f"an empty NVRTC_APPEND_FLAGS: {empty}")
    print(f"ok: {len(names)} variables")


def main():
    if sys.argv[1] == "--play":
        return play(json.loads(sys.stdin.read()))
    with tempfile.TemporaryDirectory(prefix="kiln-doors-") as root:
        suite = Suite(os.path.realpath(root), sys.argv[1:])
        full, found = check_options(suite)
        check_variables(suite)
        if not suite.fake:  # a minute of a C compiler
            check_replay(suite, full, found)
    return None


if __name__ == "__main__":
    main()
