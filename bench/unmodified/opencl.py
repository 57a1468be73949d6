#!/usr/bin/env python3
"""OpenCL programs that nobody changed, with and without kiln's layer: opencl.py [--runs N]
[--instructions | --starts KILN | --turns KILN] [--tests PYOPENCL_TESTS] LAYER [CLIENT ...]

LAYER is libkiln-opencl.so; Debian's clinfo, clpeak, hashcat, ffmpeg and python3-pyopencl are the clients, those
that are not installed are left out. Each start is a process with a home of its own; medians of N starts
(3), wall and processor time (user and system, of all its threads) in seconds:
  cold       no kiln, the driver's cache empty        own     no kiln, the driver's cache warm
  first      kiln, everything empty                   warm    kiln's cache as --capture left it, the driver's empty
  off        own under the layer with KILN_NO_CACHE=1: nothing to gain
  four       four processes at once, kiln warm, the driver's cache empty, until the last has ended
"same" says whether what each printed is what it prints without kiln.

--instructions counts them with valgrind's cachegrind instead, in millions, of the process and those that it
starts: they are the same to 0.01 % whatever else the machine does, but leave out the kernel's work. One
start each (a start takes fifty times as long):
  cold, own   as above                   warm   kiln's cache as --capture left it, the driver's empty
  off, read   cold under the layer, with KILN_NO_CACHE=1 and with KILN_READONLY=1
  own off     own under the layer, with KILN_NO_CACHE=1
What a start may store is bounded by its time, which valgrind stretches: it is not counted.

--starts is for clients that take minutes: KILN is the command, and each start is one of `kiln exec` that begins
with an empty driver's cache, processor time in seconds:
  cold, own   as above, one start each   1, 2, ...   the starts until one compiles nothing, six at most; the
              third is one with --capture
  hits        what the last of them found, of what it asked for

--turns is for what a start may cost: wall and processor time in seconds, median, least and most of N rounds, and the median's share of
that without kiln. In each round a start without kiln comes before each with it, and all begin with an empty driver's cache:
  plain       no kiln
  1, 2, 3     `kiln exec`, kiln's cache as the starts before left it; then
  capture, after   one with --capture, and one more"""
import argparse
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HASHCAT_MODES = (0, 10, 100, 300, 900, 1000, 1400, 1700, 5100, 6000)
STARTS_MAX = 6
SOURCE = "testsrc=size=320x240:rate=5:duration=1"


def filtered(name):
    return ["ffmpeg", "-v", "error", "-init_hw_device", "opencl=ocl", "-filter_hw_device", "ocl", "-f", "lavfi",
            "-i", SOURCE, "-vf", f"format=yuv420p,hwupload,{name},hwdownload,format=yuv420p", "-f", "framemd5", "-"]


ARRAYS = """
import numpy, pyopencl, pyopencl.array, pyopencl.clmath
from pyopencl.elementwise import ElementwiseKernel
context = pyopencl.Context([pyopencl.get_platforms()[0].get_devices()[0]])
queue = pyopencl.CommandQueue(context)
a = pyopencl.array.to_device(queue, numpy.arange(1, 4097, dtype=numpy.float32))
b = pyopencl.array.empty_like(a)
ElementwiseKernel(context, "float *a, float *b", "b[i] = 2 * a[i] + 1")(a, b)
print(b.get()[::512], pyopencl.clmath.sin(a).get()[:4], (a + b).get()[:4])
"""


def has_pyopencl():
    return subprocess.run(["/usr/bin/python3", "-c", "import pyopencl"], stderr=subprocess.DEVNULL).returncode == 0


def clients(tests):
    rows = {"clinfo": ["clinfo"],
            "clpeak": ["clpeak", "--kernel-latency"],
            "clpeak-sp": ["clpeak", "--compute-sp", "-i", "2"],
            "ffmpeg-unsharp": filtered("unsharp_opencl"),
            "ffmpeg-avgblur": filtered("avgblur_opencl=sizeX=5"),
            "ffmpeg-nlmeans": filtered("nlmeans_opencl=p=3:r=5")}
    for mode in HASHCAT_MODES:
        rows[f"hashcat-{mode}"] = ["hashcat", "-b", "-m", str(mode), "--machine-readable", "--force", "--session", "HOME"]
    if has_pyopencl():
        rows["pyopencl-arrays"] = ["/usr/bin/python3", "-c", ARRAYS]
    if tests:
        rows["pyopencl"] = ["/usr/bin/python3", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rA",
                            f"{tests}/test_wrapper.py", f"{tests}/test_clmath.py", "-k",
                            "not test_sub_buffers and not bessel"]
    return {name: row for name, row in rows.items() if shutil.which(row[0])}


def neutral(name, text):
    """Without speeds, times, and the names of temporary files."""
    if name.startswith("hashcat"):
        return re.sub(r"^(Started|Stopped): .*|:[\d.]+:\d+$", "N", text, flags=re.M)
    if name.startswith("clpeak"):
        return re.sub(r"[\d.]+( us)?$", "N", text, flags=re.M)
    if name == "pyopencl":
        return "\n".join(sorted(re.sub(r" - .*", "", line) for line in text.splitlines()
                                if re.match(r"(PASSED|FAILED|SKIPPED|ERROR)", line)))
    return text


COUNTED = ("cold", "off", "read", "own", "own off", "warm")


class Bench:
    def __init__(self, root, layer):
        self.root, self.layer, self.homes = Path(root), layer, 0

    def variables(self, driver, kiln=None, **more):
        self.homes += 1
        home = self.root / f"home{self.homes}"
        for folder in (home, self.root / driver):
            folder.mkdir(exist_ok=True)
        env = {k: v for k, v in os.environ.items() if not k.startswith(("KILN_", "OPENCL_LAYERS", "XDG_"))}
        env.update(HOME=str(home), XDG_CACHE_HOME=str(home), XDG_DATA_HOME=str(home),
                   POCL_CACHE_DIR=str(self.root / driver), PYOPENCL_NO_CACHE="1", **more)
        if kiln:
            env.update(OPENCL_LAYERS=self.layer, KILN_CACHE_DIR=str(self.root / kiln))
        return env

    def fresh(self):
        self.homes += 1
        return f"driver{self.homes}"

    def start(self, row, env):
        row = [part if part != "HOME" else Path(env["HOME"]).name for part in row]  # one a process
        return subprocess.Popen(row, env=env, cwd=env["HOME"], text=True, errors="replace",
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)

    def run(self, row, env):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.monotonic()
        out = self.start(row, env).communicate()[0]
        wall = time.monotonic() - start
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, out

    def count(self, row, env):
        """Millions of instructions in user space."""
        row = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--trace-children=yes",
               "--cachegrind-out-file=/dev/null", *row]
        done = subprocess.run([Path(env["HOME"]).name if part == "HOME" else part for part in row], env=env,
                              cwd=env["HOME"], text=True, errors="replace", capture_output=True,
                              stdin=subprocess.DEVNULL)
        found = re.findall(r"I +refs: +([\d,]+)", done.stderr)
        return sum(int(number.replace(",", "")) for number in found) / 1e6

    def four(self, row, kiln):
        begin = time.monotonic()
        driver = self.fresh()
        all_four = [self.start(row, self.variables(driver, kiln)) for _ in range(4)]
        outs = [process.communicate()[0] for process in all_four]
        return time.monotonic() - begin, outs


def measure(bench, name, row, runs):
    said, table = [], {}

    def column(title, make):
        rows = [bench.run(row, make()) for _ in range(runs)]
        said.extend(neutral(name, out) for _, _, out in rows)
        table[title] = tuple(statistics.median(values) for values in list(zip(*rows))[:2])

    own = bench.fresh()
    bench.run(row, bench.variables(own))
    column("cold", lambda: bench.variables(bench.fresh()))
    column("own", lambda: bench.variables(own))
    column("off", lambda: bench.variables(own, "off", KILN_NO_CACHE="1"))
    column("first", lambda: bench.variables(bench.fresh(), bench.fresh()))
    bench.run(row, bench.variables(bench.fresh(), name, KILN_CAPTURE="1"))
    column("warm", lambda: bench.variables(bench.fresh(), name))
    wall, outs = bench.four(row, name)
    said.extend(neutral(name, out) for out in outs)
    cells = " | ".join(f"{table[t][0]:.2f} / {table[t][1]:.2f}" for t in ("cold", "own", "off", "first", "warm"))
    print(f"| {name} | {cells} | {wall:.2f} | {'yes' if len(set(said)) == 1 else 'NO'} |", flush=True)


def count(bench, name, row):
    own = bench.fresh()
    cells = {"cold": bench.count(row, bench.variables(own)), "own": bench.count(row, bench.variables(own)),
             "own off": bench.count(row, bench.variables(own, "off", KILN_NO_CACHE="1"))}
    for title, variable in (("off", "KILN_NO_CACHE"), ("read", "KILN_READONLY")):
        cells[title] = bench.count(row, bench.variables(bench.fresh(), title, **{variable: "1"}))
    bench.count(row, bench.variables(bench.fresh(), "kiln", KILN_CAPTURE="1"))
    cells["warm"] = bench.count(row, bench.variables(bench.fresh(), "kiln"))
    print(f"| {name} | {' | '.join(f'{cells[title]:.1f}' for title in COUNTED)} |", flush=True)


def count_starts(bench, name, row, kiln):
    """Starts with kiln's cache as those before left it, until one compiles nothing."""
    own, report = bench.fresh(), bench.root / "report.json"
    cold, warm = bench.run(row, bench.variables(own)), bench.run(row, bench.variables(own))
    said, times, found = [cold[2], warm[2]], [], {"compiled": 1}
    while found["compiled"] > 0 and len(times) < STARTS_MAX:
        env = bench.variables(bench.fresh(), KILN_CACHE_DIR=str(bench.root / "kiln"))
        capture = ["--capture"] if len(times) == 2 else []
        _, took, out = bench.run([kiln, "exec", *capture, "--report", str(report), "--", *row], env)
        found = json.loads(report.read_text())
        times.append(took)
        said.append(out)
    asked = found["hits"] + found["compiled"] + found["bypassed"]
    print(f"| {name} | {cold[1]:.2f} | {warm[1]:.2f} | {', '.join(f'{took:.2f}' for took in times)} | "
          f"{found['hits']} of {asked} | {'yes' if len({neutral(name, out) for out in said}) == 1 else 'NO'} |",
          flush=True)


TURNS = ("plain", "1", "2", "3", "capture", "after")


def take_turns(bench, name, row, kiln, runs):
    walls, said = {title: [] for title in TURNS}, []
    works = {title: [] for title in TURNS}
    for turn in range(runs):
        for title in TURNS[1:]:
            wall, work, out = bench.run(row, bench.variables(bench.fresh()))
            walls["plain"].append(wall)
            works["plain"].append(work)
            said.append(out)
            env = bench.variables(bench.fresh(), KILN_CACHE_DIR=str(bench.root / f"kiln{turn}"))
            capture = ["--capture"] if title == "capture" else []
            wall, work, out = bench.run([kiln, "exec", *capture, "--", *row], env)
            walls[title].append(wall)
            works[title].append(work)
            said.append(out)
    same = "yes" if len({neutral(name, out) for out in said}) == 1 else "NO"
    for kind, times in (("wall", walls), ("processor", works)):
        plain = statistics.median(times["plain"])
        cells = [f"{statistics.median(times[t]):.2f} ({min(times[t]):.2f} to {max(times[t]):.2f}; "
                 f"{statistics.median(times[t]) / plain:.2f})" for t in TURNS]
        print(f"| {name}, {kind} | {' | '.join(cells)} | {same} |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("layer")
    parser.add_argument("client", nargs="*")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--tests")
    parser.add_argument("--instructions", action="store_true")
    parser.add_argument("--starts", metavar="KILN")
    parser.add_argument("--turns", metavar="KILN")
    options = parser.parse_args()
    titles = COUNTED if options.instructions else ("cold", "own", "off", "first", "warm", "four", "same")
    titles = ("cold", "own", "1, 2, ...", "hits", "same") if options.starts else titles
    titles = (*TURNS, "same") if options.turns else titles
    print(f"| client | {' | '.join(titles)} |", f"| --- |{' ---: |' * len(titles)}", sep="\n")
    options.layer = os.path.abspath(options.layer)
    for name, row in clients(options.tests).items():
        if not options.client or name in options.client:
            with tempfile.TemporaryDirectory() as root:
                bench = Bench(root, options.layer)
                if options.turns:
                    take_turns(bench, name, row, options.turns, options.runs)
                elif options.starts:
                    count_starts(bench, name, row, options.starts)
                elif options.instructions:
                    count(bench, name, row)
                else:
                    measure(bench, name, row, options.runs)


if __name__ == "__main__":
    sys.exit(main())
