#!/usr/bin/env python3
"""ptxas.py KILN LIBEXEC REAL: every command line below on the real ptxas, then on kiln's in its
place, cold and warm: output files, exit codes, standard output and errors must be equal, byte by
byte. REAL is a ptxas, or "none" for that of a toolkit."""
import collections
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

KILN, LIBEXEC, REAL = sys.argv[1:4]
OURS = f"{LIBEXEC}/ptxas/ptxas"
KERNEL = """.version 8.0
.target sm_75
.address_size 64
%s
.visible .entry k(.param .u64 a)
{
.reg .u64 %%r<4>;
.reg .f64 %%d<3>;
%s
ld.param.u64 %%r1, [a];
ld.f64 %%d1, [%%r1];
add.f64 %%d1, %%d1, %%d1;
st.f64 [%%r1], %%d1;
ret;
}
"""


def find_real():
    if os.path.exists(REAL):
        return REAL
    for base in (os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), "/usr/local/cuda"):
        if base and os.path.exists(f"{base}/bin/ptxas"):
            return f"{base}/bin/ptxas"
    print("SKIP cuda: no ptxas (install a CUDA toolkit, or set CUDA_PATH)")
    sys.exit(77)


# Lines that kiln follows: each must hit the second time.
FOLLOWED = """in.ptx -o out
in.ptx -o=out
in.ptx --output-file out
in.ptx --output-file=out
-o out in.ptx
in.ptx
-arch=sm_90 in.ptx -o out
-arch sm_90 in.ptx -o out
--gpu-name=sm_90a in.ptx -o out
--gpu-name sm_90 in.ptx -o out
-lineinfo -v --gpu-name=sm_90a lines.ptx -o out
-lineinfo lines.ptx -o out
lines.ptx -o out
-lineinfo -suppress-debug-info -v --gpu-name=sm_90a lines.ptx -o out
-lineinfo --fmad=false -v --opt-level 0 --gpu-name=sm_90a lines.ptx -o out
in.ptx -o out -arch=sm_90a --warn-on-spills
in.ptx -o out -arch=sm_90a --warn-on-spills -v -O0
-c in.ptx -o out
-O1 in.ptx -o out
-O2 in.ptx -o out
-O3 in.ptx -o out
-O4 in.ptx -o out
--opt-level=2 in.ptx -o out
--maxrregcount=32 in.ptx -o out
-maxrregcount 32 in.ptx -o out
-maxrregcount=archmin in.ptx -o out
-c -func-maxrregcount=32 in.ptx -o out
--def-load-cache=cg in.ptx -o out
-dlcm ca in.ptx -o out
-dscm=wb in.ptx -o out
-flcm=cg in.ptx -o out
-fscm cg in.ptx -o out
-fmad=false in.ptx -o out
-fmad true in.ptx -o out
--fmad false in.ptx -o out
-allow-expensive-optimizations=true in.ptx -o out
--register-usage-level=10 in.ptx -o out
-regUsageLevel 3 in.ptx -o out
-Ofc=mid in.ptx -o out
--Ofast-compile max in.ptx -o out
-e k in.ptx -o out
--entry=k in.ptx -o out
-m64 in.ptx -o out
-m 64 in.ptx -o out
--machine=64 in.ptx -o out
-pic=true -c in.ptx -o out
--device-stack-protector=true in.ptx -o out
-minnctapersm=2 in.ptx -o out
-maxntid=128,1,1 in.ptx -o out
-w -warn-double-usage in.ptx -o out
-warn-double-usage in.ptx -o out
-warn-double-usage deep/in.ptx -o out
-warn-double-usage ./deep/../in.ptx -o deep/out
-warn-lmem-usage -warn-spills in.ptx -o out
-ewp -c in.ptx -o out
-preserve-relocs in.ptx -o out
-ret-end in.ptx -o out
-sp-bounds-check in.ptx -o out
-disable-optimizer-consts in.ptx -o out
-no-bb-merge in.ptx -o out
-opt-fp-atomics in.ptx -o out
-make-errors-visible-at-exit in.ptx -o out
-override-directive-values -maxntid=64 in.ptx -o out
-suppress-stack-size-warning -suppress-double-demote-warning in.ptx -o out
-suppress-async-bulk-multicast-advisory-warning -suppress-sparse-mma-advisory-info in.ptx -o out
-arch=sm_90 -arch=sm_90 in.ptx -o out
-O3 -O2 in.ptx -o out
in.ptx -o there
in.ptx -o link
in.ptx -o in-place""".splitlines()

# Lines that are the real one's to answer, and what fails.
OTHERS = """--help
-h
-V
--list-version

-arch=sm_90
missing.ptx -o out
empty.ptx -o out
bad.ptx -o out
-v bad.ptx -o out
bad.ptx -o there
-Werror -warn-double-usage in.ptx -o out
-arch=sm_70 in.ptx -o out
-arch=sm_1 in.ptx -o out
-arch=compute_90 in.ptx -o out
-arch=lto_90 in.ptx -o out
-arch
-o
in.ptx -o
-o out
-no-such-option in.ptx -o out
--verb in.ptx -o out
-v=true in.ptx -o out
-O 2 in.ptx -o out
-O5 in.ptx -o out
-O9 in.ptx -o out
-ox in.ptx
--fmad in.ptx -o out
-fmad=maybe in.ptx -o out
-maxrregcount=lots in.ptx -o out
-maxrregcount -v in.ptx -o out
-e nothing in.ptx -o out
in.ptx other.ptx -o out
in.ptx in.ptx -o out
in.ptx -o out -o out2
in.ptx -o /no/such/place
in.ptx -o deep
deep -o out
-g in.ptx -o out
-g -lineinfo lines.ptx -o out
-split-compile=2 in.ptx -o out
-optf options in.ptx -o out
@options in.ptx -o out
-astoolspatch in.ptx -o out
-sanitize memcheck in.ptx -o out
in.ptx -o /dev/null
/dev/null -o out
in.ptx -o /dev/stdout
odd.ptx -o out
twice.ptx -o out
in.ptx --version
--version --help""".splitlines()


class Suite:
    def __init__(self, root):
        self.root, self.real = Path(root), find_real()
        self.report = self.root / "report"
        self.cache = self.root / "cache"
        self.sources = self.root / "sources"
        self.sources.mkdir()
        for name in ("one.py", "two.py"):
            (self.sources / name).write_text("pass\n" * len(name))
            os.utime(self.sources / name, (1600000000, 1600000000))

    def fill(self, place):
        shutil.rmtree(place, ignore_errors=True)
        (place / "deep").mkdir(parents=True)
        text = KERNEL % ("", "")
        files = "".join(f'.file {i + 1} "{path}"\n' for i, path in enumerate(
            (self.sources / "one.py", self.sources / "two.py", "/no/such/file.py")))
        lines = KERNEL % (files, ".loc 1 5 3\nmov.u64 %r2, 1;\n.loc 2 6 1\nmov.u64 %r3, 2;\n.loc 3 1 1")
        odd = KERNEL % ('.file 1\n"x.py"', ".loc 1 5 3")
        twice = KERNEL % ('.file 1 "x.py", 1700000000, 7', ".loc 1 5 3")
        for name, content in {"in.ptx": text, "deep/in.ptx": text, "bad.ptx": "nothing\n", "empty.ptx": "",
                              "other.ptx": text.replace("k(", "other("), "lines.ptx": lines,
                              "odd.ptx": odd, "twice.ptx": twice, "options": "-v", "there": "was there, and longer",
                              "in-place": text}.items():
            (place / name).write_text(content)
        (place / "link").symlink_to("target")

    def environment(self, **more):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("KILN_", "TRITON_"))}
        env.update(KILN_CACHE_DIR=str(self.cache), KILN_PTXAS=self.real, KILN_EXEC_REPORT=str(self.report))
        env.update(more)
        return env

    def run(self, program, line, place, **more):
        """All that a caller can see of one call."""
        self.fill(place)
        self.report.touch()
        before = self.report.stat().st_size
        done = subprocess.run([program, *line.split()], cwd=place, env=self.environment(**more),
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
        files = {str(p.relative_to(place)): (p.is_symlink(), p.stat().st_mode, p.read_bytes())
                 for p in place.rglob("*") if p.is_file()}
        with open(self.report, encoding="utf-8") as report:
            report.seek(before)
            origins = [row.split("\t")[1] for row in report.read().splitlines()]
        errors = re.sub(rb"Compile time = [0-9.]+ ms", b"Compile time", done.stderr)
        errors = errors.replace(self.real.encode(), b"PTXAS").replace(program.encode(), b"PTXAS")
        return (done.returncode, done.stdout, errors, files), origins

    def same(self, wanted, got, when, line):
        for a, b, what in zip(wanted, got, ("exit code", "output", "errors", "files")):
            if a == b:
                continue
            if what == "files":
                a = {k: v for k, v in a.items() if b.get(k) != v}
                b = {k: v for k, v in b.items() if k in a or k not in wanted[3]}
            sys.exit(f"{when}: ptxas {line}: {what}:\n  ptxas {str(a)[:1500]}\n  kiln  {str(b)[:1500]}")

    def compare(self, lines, followed):
        counts = collections.Counter()
        for line in lines:
            wanted, _ = self.run(self.real, line, self.root / "work")
            cold, first = self.run(OURS, line, self.root / "work")
            warm, second = self.run(OURS, line, self.root / "work")
            self.same(wanted, cold, "cold", line)
            self.same(wanted, warm, "warm", line)
            if followed and (wanted[0] != 0 or second != ["disk"]):
                sys.exit(f"ptxas {line}: {first}, {second}: no hit")
            if not followed and any(o in ("disk", "compiled", "memory") for o in first + second) \
                    and line not in KEYED:
                sys.exit(f"ptxas {line}: {first}, {second}: cached")
            counts.update(first + second)
        print(f"ok: {len(lines)} lines, {dict(counts)}")


# The table of lines has what the text itself says: nothing of the machine.
KEYED = ["twice.ptx -o out", "in.ptx -o /dev/null", "in.ptx -o /dev/stdout"]


def check_times(suite):
    """A hit has the times of the sources as they are here."""
    line = "-lineinfo lines.ptx -o out"
    for when in (1600000000, 1700000001):
        os.utime(suite.sources / "one.py", (when, when))
        wanted, _ = suite.run(suite.real, line, suite.root / "work")
        got, origins = suite.run(OURS, line, suite.root / "work")
        suite.same(wanted, got, f"time {when}", line)
        if origins != ["disk"]:
            sys.exit(f"the time of a source cost a hit: {origins}")
    (suite.sources / "one.py").write_text("another size\n")
    wanted, _ = suite.run(suite.real, line, suite.root / "work")
    got, origins = suite.run(OURS, line, suite.root / "work")
    suite.same(wanted, got, "another size", line)
    if origins != ["compiled"]:
        sys.exit(f"a source of another size: {origins}")
    os.remove(suite.sources / "one.py")
    for expected in ("compiled", "disk"):
        wanted, _ = suite.run(suite.real, line, suite.root / "work")
        got, origins = suite.run(OURS, line, suite.root / "work")
        suite.same(wanted, got, "a source that is gone", line)
        if origins != [expected]:
            sys.exit(f"a source that is gone: {origins}")
    os.utime(suite.sources / "two.py", (1, 1))
    for expected in ("compiled", "disk"):
        wanted, _ = suite.run(suite.real, line, suite.root / "work")
        got, origins = suite.run(OURS, line, suite.root / "work")
        suite.same(wanted, got, "a source of 1970", line)
        if origins != [expected]:
            sys.exit(f"a source of 1970: {origins}")
    print("ok: times of sources")


def check_places(suite):
    """A cache that fails, a real ptxas that changes, kiln taken out."""
    line = "-v -arch=sm_90 in.ptx -o out"
    wanted, _ = suite.run(suite.real, line, suite.root / "work")
    for more in ({"KILN_DISABLE": "1"}, {"KILN_CACHE_DIR": "/proc/none"},
                 {"KILN_CACHE_DIR": "not absolute"}, {"KILN_READONLY": "1"},
                 {"KILN_CACHE_DIR": str(suite.root / "full"), "KILN_CACHE_MAX_SIZE": "1"},
                 {"KILN_NO_CACHE": "1"}, {"DUMP_KNOBS_TO_FILE": str(suite.root / "knobs")}):
        suite.same(wanted, suite.run(OURS, line, suite.root / "work", **more)[0], str(more), line)
    if suite.run(OURS, line, suite.root / "work", KILN_DISABLE="1")[1]:
        sys.exit("KILN_DISABLE: reported")
    suite.same(wanted, suite.run(OURS, line, suite.root / "work")[0], "cold", line)
    copy = suite.root / "toolkit/ptxas"
    copy.parent.mkdir()
    shutil.copy(suite.real, copy)
    same, origins = suite.run(OURS, line, suite.root / "work", KILN_PTXAS=str(copy))
    suite.same(wanted, same, "a copy", line)
    if origins != ["disk"]:
        sys.exit(f"the same ptxas at another place: {origins}")
    with open(copy, "ab") as file:
        file.write(b"another")
    has_id = b".note.gnu.build-id" in copy.read_bytes()
    if suite.run(OURS, line, suite.root / "work", KILN_PTXAS=str(copy))[1] != ["compiled"] and not has_id:
        sys.exit("another ptxas was answered from the first one's entries")
    script = suite.root / "toolkit/script"
    script.write_text(f"#!/bin/sh\nexec {suite.real} \"$@\"\n")
    script.chmod(0o755)
    same, origins = suite.run(OURS, line, suite.root / "work", KILN_PTXAS=str(script))
    suite.same(wanted, same, "a script", line)
    if origins != ["bypassed"]:
        sys.exit(f"a script in place of ptxas: {origins}")
    done = subprocess.run([OURS, "x.ptx"], env=suite.environment(KILN_PTXAS="", PATH=f"{LIBEXEC}/ptxas"),
                          capture_output=True, check=False)
    if done.returncode != 127 or b"KILN_PTXAS" not in done.stderr:
        sys.exit(f"no ptxas at all: {done}")
    print("ok: places")


def check_processes(suite):
    """Two at once compile once; one that is killed leaves nothing that the next waits for."""
    work = suite.root / "many"
    suite.fill(work)
    env = suite.environment()
    for lines in (60000, 240000, 960000):  # a fast machine ends the small one before it is killed
        (work / "big.ptx").write_text(KERNEL % ("", "add.u64 %r2, %r3, 1;\n" * lines))
        suite.report.write_text("")
        first = subprocess.Popen([OURS, "-arch=sm_90", "big.ptx", "-o", "a"], cwd=work, env=env)
        time.sleep(0.3)
        first.send_signal(signal.SIGKILL)
        first.wait()
        if not (work / "a").exists():
            break
        (work / "a").unlink()
    else:
        sys.exit("the one that was killed had always ended: make the input bigger")
    codes = [None] * 4

    def compile_one(i):
        codes[i] = subprocess.run([OURS, "-arch=sm_90", "big.ptx", "-o", f"out{i}"], cwd=work, env=env,
                                  check=False).returncode

    threads = [threading.Thread(target=compile_one, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    subprocess.run([suite.real, "-arch=sm_90", "big.ptx", "-o", "real"], cwd=work, check=True)
    if codes != [0] * 4 or len({(work / f"out{i}").read_bytes() for i in range(4)} |
                               {(work / "real").read_bytes()}) != 1:
        sys.exit(f"four at once: {codes}")
    origins = collections.Counter(r.split("\t")[1] for r in suite.report.read_text().splitlines())
    if origins["compiled"] != 1:
        sys.exit(f"four at once: {origins}")
    print(f"ok: four at once, {dict(origins)}")


def check_triton(suite):
    """By its Triton names it finds what Triton, or Inductor, would have run."""
    site = suite.root / "site"
    for below, text in (("torch/bin/ptxas", "torch"), ("triton/backends/nvidia/bin/ptxas", "triton"),
                        ("triton/backends/nvidia/bin/ptxas-blackwell", "blackwell"), ("own", "own")):
        path = site / below
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\necho {text}\n")
        path.chmod(0o755)
    for name, more, wanted in (("ptxas", {}, "triton"), ("ptxas-blackwell", {}, "blackwell"),
                               ("ptxas", {"TORCHINDUCTOR_CACHE_DIR": "/x"}, "torch"),
                               ("ptxas-blackwell", {"TORCHINDUCTOR_CACHE_DIR": "/x"}, "blackwell"),
                               ("ptxas", {"KILN_TRITON_PTXAS": str(site / "own")}, "own"),
                               ("ptxas-blackwell", {"KILN_TRITON_PTXAS_BLACKWELL": str(site / "own")}, "own")):
        done = subprocess.run([f"{LIBEXEC}/triton/{name}", "--help"], capture_output=True, text=True, check=False,
                              env=suite.environment(KILN_TRITON=str(site), **more))
        if done.stdout.strip() != wanted:
            sys.exit(f"{name} with {more}: {done}, not {wanted}")
    # What the parent has mapped goes before what a variable says.
    library = site / "triton/_C/libtriton.so"
    library.parent.mkdir()
    shutil.copy(f"{LIBEXEC}/libkiln-zstd.so", library)
    code = ("import ctypes,subprocess,sys; ctypes.CDLL(sys.argv[1]);"
            "print(subprocess.run([sys.argv[2], '--help'], capture_output=True, text=True).stdout)")
    done = subprocess.run([sys.executable, "-c", code, str(library), f"{LIBEXEC}/triton/ptxas"], check=False,
                          env=suite.environment(KILN_TRITON="/no/such/place"), capture_output=True, text=True)
    if done.stdout.strip() != "triton":
        sys.exit(f"by the parent's libtriton.so: {done}")
    print("ok: Triton's names")


def check_exec(suite):
    """kiln exec sets what programs read."""
    code = "import os; print(os.popen('command -v ptxas').read().strip(), os.environ['TRITON_PTXAS_PATH']," \
           " os.environ['TRITON_PTXAS_BLACKWELL_PATH'], os.environ.get('KILN_TRITON_PTXAS'))"
    bin_directory = suite.root / "bin"
    bin_directory.mkdir()
    (bin_directory / "ptxas").symlink_to(suite.real)
    env = suite.environment(PATH=f"{bin_directory}:{os.environ['PATH']}", KILN_LIBEXEC=LIBEXEC)
    del env["KILN_PTXAS"]
    libexec = os.path.realpath(LIBEXEC)
    own, blackwell = f"{libexec}/triton/ptxas", f"{libexec}/triton/ptxas-blackwell"
    absolute = str(bin_directory / "ptxas")
    # What Triton alone makes something else of than a program at that place stays as it is.
    for mine, seen, behind in ((None, own, None), (absolute, own, absolute), ("bin/ptxas", "bin/ptxas", None), ("ptxas", "ptxas", None),
                               (f"{absolute} -v", f"{absolute} -v", None), ("/no/such/ptxas", "/no/such/ptxas", None),
                               (str(bin_directory), str(bin_directory), None)):
        if mine:
            env["TRITON_PTXAS_PATH"] = mine
        for nested in ([], [KILN, "exec", "--"]):
            done = subprocess.run([KILN, "exec", "--", *nested, sys.executable, "-c", code], env=env, cwd=suite.root,
                                  capture_output=True, text=True, check=False)
            if done.stdout.strip() != f"{libexec}/ptxas/ptxas {seen} {blackwell} {behind}":
                sys.exit(f"kiln exec with {mine}, {nested}: {done}")
    suite.fill(suite.root / "work")
    done = subprocess.run([KILN, "exec", "--stats", "--", "ptxas", "-arch=sm_90", "-m64", "in.ptx", "-o", "out"],
                          env=env, cwd=suite.root / "work", capture_output=True, text=True, check=False)
    if done.returncode != 0 or "1 compile asked for" not in done.stderr:
        sys.exit(f"kiln exec --stats: {done}")
    print("ok: kiln exec")


def main():
    with tempfile.TemporaryDirectory() as root:
        suite = Suite(root)
        suite.compare(["--version"], False)
        suite.compare(FOLLOWED, True)
        suite.compare(OTHERS, False)
        check_times(suite)
        check_places(suite)
        check_processes(suite)
        check_triton(suite)
        check_exec(suite)


main()
