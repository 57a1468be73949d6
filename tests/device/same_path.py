#!/usr/bin/env python3
"""Does a program take the same path under kiln? same_path.py [--kiln KILN] [--tracers DIR] [PROGRAM ...]

Each program runs alone twice, then under `kiln exec` with an empty cache ("cold") and with the cache that left ("warm"),
each time from an empty home. Compared is what ran, not only what came out: the exit status, the results, the lines on
standard error, cuDNN's log (engines, plans, errors), the names of the kernels that were launched (by CUPTI), the
calls that reach NVRTC with their options and results. What differs between runs alone is noise, and a difference counts
only where it lies outside of what up to --alone runs alone did (5). A program that fails alone must fail in the same way.

PROGRAM is a name of --list or a path; without any, all of the list. --build-tracers DIR only makes the two tracers
there, which is done on the spot where --tracers is left out and needs `cc`. Exits with 1 if a path differs."""
import argparse
import collections
import concurrent.futures
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
UNMODIFIED = HERE.parents[1] / "bench/unmodified"
sys.path.insert(0, str(UNMODIFIED))
import run as unmodified  # noqa: E402  the homes in which programs start

Counter = collections.Counter
SHOWN = 25  # lines of what differs
# kiln keeps what their own caches keep: a warm start tries no kernels, and warns of nothing that a compile warns of.
KEPT_WHOLE = ("jax_layers", "torch_compile")
# Each of them tries kernels by the clock and takes the fastest: which ones ran is compared, not how often.
TUNED = ("cudnn_convolutions", "jax_layers", "torch_compile", "triton_matmul")


def listed():
    own = {path.stem: path for path in sorted((HERE / "programs").glob("*.py"))}
    others = {name: UNMODIFIED / f"{name}.py" for name in [*unmodified.PROGRAMS, "cuda_core_cached"]}
    return {**own, **others}


# --- tracers ---

def build_tracers(folder):
    """trace_nvrtc.c under NVRTC's two names, with its versions; trace_kernels.c."""
    folder.mkdir(parents=True, exist_ok=True)
    common = ["cc", "-std=c17", "-D_GNU_SOURCE", "-O1", "-fvisibility=hidden", "-shared", "-fPIC"]
    for major in (12, 13):
        name = f"libnvrtc.so.{major}"
        versions = folder / f"{name}.map"
        versions.write_text(f"{name} {{ global: nvrtc*; __nvrtcCPEx; local: *; }};\n")
        subprocess.run([*common, f"-DTRACE_MAJOR={major}", f"-Wl,-soname,{name}", f"-Wl,--version-script={versions}", "-o", str(folder / name),
                        str(HERE / "trace_nvrtc.c"), "-ldl", "-pthread"], check=True)
    subprocess.run([*common, "-o", str(folder / "libtrace-kernels.so"), str(HERE / "trace_kernels.c"), "-ldl"], check=True)


def find_cupti():
    """The newest libcupti of the toolkit, or of NVIDIA's wheels."""
    places = [os.environ.get("CUDA_PATH", "/usr/local/cuda") + below
              for below in ("/lib64", "/extras/CUPTI/lib64", "/targets/*/lib")]
    places += [base + below for base in sys.path for below in ("/nvidia/cu1[0-9]/lib", "/nvidia/cuda_cupti/lib")]
    found = [path for place in places for path in glob.glob(place + "/libcupti.so.1[0-9]")]
    return max(found, key=lambda path: path.rsplit(".", 1)[1]) if found else None


class Tracers:
    """The library that stands in front of the NVRTC which a program would have got, next to that one's built-ins:
    kiln takes the two for one NVRTC."""

    def __init__(self, arguments, root):
        kiln, built = arguments.kiln, arguments.tracers
        if built is None:
            built = root / "tracers"
            build_tracers(built)
        built = built.resolve()
        said = subprocess.run([kiln, "exec", "--print", "--", sys.executable], capture_output=True, text=True,
                              check=True).stdout
        reals = re.findall(r"KILN_NVRTC_(1[23])='(.*)'", said)
        self.kernels, self.nvrtc, self.real = built / "libtrace-kernels.so", None, None
        if reals:
            major, real = max(reals, key=lambda row: (row[0] == arguments.nvrtc, int(row[0])))
            self.real = os.path.realpath(real)
            place = root / "traced"
            place.mkdir()
            self.nvrtc = place / f"libnvrtc.so.{major}"
            shutil.copy(built / self.nvrtc.name, self.nvrtc)
            for path in Path(self.real).parent.glob("libnvrtc-builtins.so*"):
                (place / path.name).symlink_to(path)
        self.cupti = find_cupti()

    def settings(self, trace, under_kiln):
        env = {"TRACE_FILE": str(trace), "CUDA_INJECTION64_PATH": str(self.kernels)}
        if self.cupti:
            env["TRACE_CUPTI"] = self.cupti
        if self.nvrtc:
            env["TRACE_NVRTC_REAL"] = self.real
            if under_kiln:
                env["KILN_NVRTC_LIBRARY"] = str(self.nvrtc)
            else:
                env["LD_PRELOAD"] = ":".join(filter(None, [str(self.nvrtc), os.environ.get("LD_PRELOAD")]))
        return env


# --- one run ---

class Trace:
    """What one run did, each part a multiset of lines."""

    def __init__(self):
        self.parts = {}

    def read_lines(self, part, lines):
        self.parts[part] = Counter(lines)


def plain_line(line, root):
    """Without what is another in each run: addresses, numbers of processes, times, the directories of this test."""
    line = line.replace(str(root), "ROOT")
    line = re.sub(r"0x[0-9a-fA-F]+", "0x", line)
    line = re.sub(r"/tmp/[\w./-]*", "/tmp", line)
    line = re.sub(r"\b(pid|tid|process|thread)[ =:]*\d+", r"\1", line, flags=re.IGNORECASE)
    line = re.sub(r"\d{4}-\d\d-\d\d[ T][\d:.,]+|\b\d\d:\d\d:\d\d[\d.,]*", "TIME", line)
    return re.sub(r"\b\d+\.\d+ ?(s|ms|us|seconds)\b", "TOOK", line).rstrip()


def is_kilns(line):
    return line.startswith(("kiln:", "kiln ", "[kiln"))


def result_lines(text, root):
    """Standard output; of a line of clock.py's without its time, and the libraries that it saw mapped."""
    for line in text.splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if isinstance(row, dict):
            yield json.dumps({k: v for k, v in row.items() if k not in ("ms", "nvrtc")}, sort_keys=True)
        else:
            yield plain_line(line, root)


def cudnn_lines(text, root):
    """cuDNN's log without what differs in each run: times; two fields that it prints of descriptors in which it never
    set them (9.19: INVALID_CUDNNDATATYPE_TYPE with some number); how many plans tuning returns, as its std::set keeps one
    plan of those that took equally long. A plan that ran is a line of its own, and so is one that failed."""
    noise = re.compile(r"^[iIwWeE]! (Time|Process)|^i!\s+(mathPrec|reduceOp): ")
    varies = re.compile(r"^(\[cudnn_frontend\] (?:Plan .* took|Auto-tuning returns)) .*")
    for line in text.splitlines():
        if not noise.match(line) and line.strip():
            yield plain_line(varies.sub(r"\1", line), root)


def nvrtc_lines(fields):
    """A creation or a compile. Sources in temporary directories have another name in each run, and kiln keeps NVRTC
    from its own cache."""
    fields = [f for f in fields if f not in ("--no-cache", "-no-cache")]
    if len(fields) > 3 and "/" in fields[3]:
        fields[3] = "DIRECTORY/" + (fields[3].rsplit("/", 1)[1] if "/tmp" not in fields[3] else "NAME")
    return "\t".join(re.sub(r"/tmp/[\w./-]*", "/tmp", field) for field in fields)


class Suite:
    """The runs of one program."""

    def __init__(self, arguments, tracers, root):
        self.kiln, self.root, self.alone, self.tracers = arguments.kiln, root, arguments.alone, tracers
        root.mkdir()
        self.notes, self.served = [], []  # what kiln says, and counts, for whoever reads this

    def environment(self, home, kiln_home, files, under_kiln):
        env = unmodified.environment(home, kiln_home)
        env.update({"PYTHONPYCACHEPREFIX": str(self.root / "bytecode"), "PYTHONHASHSEED": "0",
                    "PYTHONPATH": os.pathsep.join(filter(None, [str(UNMODIFIED), env.get("PYTHONPATH")])),
                    "CUDNN_LOGLEVEL_DBG": "3", "CUDNN_LOGINFO_DBG": "1", "CUDNN_LOGWARN_DBG": "1", "CUDNN_LOGERR_DBG": "1",
                    "CUDNN_LOGDEST_DBG": str(files["cudnn"]), "CUDNN_FRONTEND_LOG_INFO": "1",
                    "CUDNN_FRONTEND_LOG_FILE": str(files["frontend"]), "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"})
        env.update(self.tracers.settings(files["trace"], under_kiln))
        return env

    def start(self, program, kiln_home):
        """Alone where `kiln_home` is None."""
        home, place = self.root / "home", self.root / "files"
        for folder in (home, place):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(exist_ok=True)
        files = {name: place / name for name in ("trace", "cudnn", "frontend")}
        env = self.environment(home, kiln_home or self.root / "unused", files, kiln_home is not None)
        command = [sys.executable, str(program)]
        report = self.root / "report.json"
        if kiln_home is not None:
            command = [self.kiln, "exec", "--report", str(report), "--", *command]
        done = subprocess.run(command, env=env, cwd=home, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace", timeout=900, check=False)
        if kiln_home is not None:
            self.served.append({k: v for k, v in json.loads(report.read_text()).items() if isinstance(v, int) and v > 0})
        return self.read(done, files)

    def read(self, done, files):
        trace = Trace()
        errors = done.stderr.splitlines()
        trace.read_lines("exit status", [str(done.returncode)])
        trace.read_lines("results", result_lines(done.stdout, self.root))
        trace.read_lines("standard error", [re.sub(r"\d+", "N", plain_line(line, self.root)) for line in errors
                                            if not is_kilns(line)])
        self.notes += [line for line in errors if is_kilns(line)]
        for part, name in (("cuDNN", "cudnn"), ("cuDNN's frontend", "frontend")):
            text = files[name].read_text(errors="replace") if files[name].exists() else ""
            trace.read_lines(part, cudnn_lines(text, self.root))
        rows = files["trace"].read_text(errors="replace").splitlines() if files["trace"].exists() else []
        rows = [row.split("\t") for row in rows]
        trace.read_lines("kernels", ["\t".join(row) for row in rows if row[0] in ("kernel", "graph", "nocupti")])
        # kiln creates no program of a text that it never has to compile.
        calls = [row for row in rows if row[0] == "compile" or (row[0] == "create" and row[1:3] != ["text", "0"])]
        for by in ("text", "encrypted", "nobody"):
            trace.read_lines(f"NVRTC ({by})", [nvrtc_lines(row) for row in calls if row[1] == by])
        return trace


# --- comparing ---

# What kiln answers from its cache is asked once: of these, which ones there were is compared, not how often.
AS_SETS = ("NVRTC (text)",)


def blur(lines):
    """Without numbers, for a part that no two runs have alike: results of atomic additions, names of files in PTX."""
    blurred = Counter()
    for line, count in lines.items():
        blurred[re.sub(r"\b[0-9a-f]{8,}\b|\d+", "N", line)] += count
    return blurred


def differences(alone, trace, way, name):
    """(part, line, what is wrong) of each line outside of what the runs alone did."""
    for part, lines in trace.parts.items():
        rows = [run.parts[part] for run in alone]
        if all(row != rows[0] for row in rows[1:]):
            rows, lines = [blur(row) for row in rows], blur(lines)
        if part in AS_SETS or (name in TUNED and part in ("kernels", "cuDNN", "cuDNN's frontend")):
            rows, lines = [Counter(set(row)) for row in rows], Counter(set(lines))
        fewest, most = rows[0].copy(), rows[0].copy()
        for row in rows[1:]:
            fewest, most = fewest & row, most | row
        if way == "warm" and (part == "NVRTC (text)" or
                              (name in KEPT_WHOLE and part not in ("exit status", "results"))):
            fewest = Counter()  # found in the cache
        for line in (fewest - lines):
            yield part, line, f"{lines[line]} times instead of {fewest[line]} or more"
        for line in (lines - most):
            yield part, line, f"{lines[line]} times instead of {most[line]} or fewer"


def check(suite, program, name):
    """None if the path is the same, else what differs."""
    alone = [suite.start(program, None) for _ in range(2)]
    store = suite.root / "store"
    shutil.rmtree(store, ignore_errors=True)
    runs = [(way, suite.start(program, store)) for way in ("cold", "warm")]
    while True:
        found = [(way, *row) for way, trace in runs for row in differences(alone, trace, way, name)]
        if not found or len(alone) >= suite.alone:
            return alone, found
        alone.append(suite.start(program, None))


def describe(alone):
    """What there was to compare, so that a comparison of nothing is seen."""
    parts = alone[0].parts
    status = next(iter(parts["exit status"]))
    seen = ", ".join(f"{sum(parts[part].values())} {word}" for part, word in (
        ("kernels", "launches"), ("cuDNN", "lines of cuDNN's"), ("NVRTC (text)", "NVRTC calls"),
        ("NVRTC (encrypted)", "encrypted")) if parts[part])
    blind = "; CUPTI told nothing" if any(line.startswith("nocupti") for line in parts["kernels"]) else ""
    return f"{seen or 'results alone'}{blind}" if status == "0" else f"fails alone with {status}, and in the same way"


def report(arguments, tracers, path, root):
    """What is printed of one program, and whether its path differs."""
    suite = Suite(arguments, tracers, root)
    try:
        alone, found = check(suite, path, path.stem)
    except subprocess.TimeoutExpired as error:
        return f"DIFFERS {path.stem}: a run did not end in {error.timeout} s", True
    lines = [f"{'DIFFERS' if found else 'same':8}{path.stem}: {describe(alone)}",
             f"        kiln counts: cold {suite.served[0]}, warm {suite.served[1]}"]
    lines += [f"        kiln says: {note[:300]}" for note in sorted(set(suite.notes))]
    lines += [f"        {way}: {part}: {what}: {line[:300]}" for way, part, line, what in found[:SHOWN]]
    lines += [f"        and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
    return "\n".join(lines), bool(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kiln", default="kiln")
    parser.add_argument("--tracers", type=Path)
    parser.add_argument("--build-tracers", type=Path)
    parser.add_argument("--nvrtc", choices=("12", "13"), help="the major version to trace; else the newest")
    parser.add_argument("--alone", type=int, default=5, help="runs alone, at most")
    parser.add_argument("--jobs", type=int, default=4, help="programs at a time")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("programs", nargs="*")
    arguments = parser.parse_args()
    if arguments.build_tracers:
        build_tracers(arguments.build_tracers)
        return 0
    programs = listed()
    if arguments.list:
        print("\n".join(programs))
        return 0
    differ = []
    with tempfile.TemporaryDirectory(prefix="kiln-same-path-") as name, \
            concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        root = Path(name).resolve()
        tracers = Tracers(arguments, root)
        print(f"NVRTC: {tracers.real or 'none'}; CUPTI: {tracers.cupti or 'none'}", flush=True)
        paths = [programs.get(name, Path(name)).resolve() for name in arguments.programs or programs]
        done = {pool.submit(report, arguments, tracers, path, root / f"program-{path.stem}"): path for path in paths}
        for job in concurrent.futures.as_completed(done):
            text, differs = job.result()
            print(text, flush=True)
            differ += [done[job].stem] if differs else []
    print(f"{len(differ)} differ: {', '.join(sorted(differ))}" if differ else "every path is the same")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
