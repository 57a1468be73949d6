#!/usr/bin/env python3
"""runs.py [--rounds N] [--starts N] BUILD [PROGRAM...]: whole runs of unmodified programs, launches included: with the
driver alone, and three times (--starts) through kiln, from an empty cache on. By hand, on a machine with PoCL:

    apt-get install clpeak ffmpeg libclblast-dev python3-pyopencl opencl-c-headers

The layer bench/foreign/through.c stands for a program whose author calls kiln. Each run has an empty
directory for PoCL's own cache, so that only kiln remembers. The runs of a round follow one another, and the
table has medians of the rounds' ratios: other work on the machine hits both sides of one. "cpu" is processor
time, user and system, of all threads and children; "wall" the time that passed."""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
FILTERS = ["avgblur_opencl=2", "unsharp_opencl", "sobel_opencl", "nlmeans_opencl=s=1:p=3:r=3"]
PYOPENCL = """
import numpy, pyopencl, pyopencl.array
from pyopencl.elementwise import ElementwiseKernel
from pyopencl.reduction import ReductionKernel
context = pyopencl.Context([pyopencl.get_platforms()[0].get_devices()[0]])
queue = pyopencl.CommandQueue(context)
a = pyopencl.array.to_device(queue, numpy.arange(1024, dtype=numpy.float32))
b = 2 * a + a * a
ElementwiseKernel(context, "float *x", "x[i] = x[i] * x[i]", "square")(a)
ReductionKernel(context, numpy.float32, "0", "a+b", map_expr="x[i]", arguments="__global float *x")(a).get()
pyopencl.array.dot(a, b).get()
"""


def ffmpeg(one):
    return ["ffmpeg", "-v", "error", "-init_hw_device", "opencl=cl", "-filter_hw_device", "cl", "-f", "lavfi",
            "-i", "testsrc=s=64x64:d=0.2", "-vf", f"format=yuv420p,hwupload,{one},hwdownload,format=yuv420p",
            "-f", "null", "-"]


def clblast(scratch):
    if not Path("/usr/include/clblast_c.h").exists():
        return None
    program = scratch / "clblast"
    subprocess.run([os.environ.get("CC", "cc"), "-O1", "-o", program, HERE / "clblast.c", "-lclblast",
                    "-lOpenCL"], check=True)
    return [str(program)]


def commands(name, scratch):
    """The processes of one run; [] where the program is not installed."""
    made = {
        "clpeak": lambda: [["clpeak", "--kernel-latency"]],
        "clpeak-compute": lambda: [["clpeak", "--compute-sp", "--compute-integer", "-i", "2"]],
        "ffmpeg": lambda: [ffmpeg(one) for one in FILTERS],
        "clblast": lambda: [clblast(scratch)],
        "pyopencl": lambda: [["/usr/bin/python3", "-c", PYOPENCL]],
    }[name]()
    return made if all(command and shutil.which(command[0]) for command in made) else []


class Runs:
    def __init__(self, layer, scratch):
        self.layer, self.scratch = layer, scratch
        self.report = scratch / "report"

    def process(self, command, settings):
        """Seconds on the clock and of processor time."""
        pocl = self.scratch / "pocl"
        shutil.rmtree(pocl, ignore_errors=True)
        pocl.mkdir()
        environment = dict(os.environ, HOME=str(self.scratch), XDG_CACHE_HOME=str(self.scratch / "xdg"),
                           POCL_CACHE_DIR=str(pocl), PYOPENCL_NO_CACHE="1", **settings)
        begin = time.monotonic()
        child = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        trouble = child.stderr.read().decode(errors="replace")
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = status
        if status < 0 or os.WIFSIGNALED(status):
            sys.exit(f"{command[0]}: ended by a signal: {trouble[-500:]}")
        return time.monotonic() - begin, usage.ru_utime + usage.ru_stime

    def all(self, program, cache):
        settings = {"OPENCL_LAYERS": str(self.layer), "FOREIGN_CACHE": str(cache),
                    "FOREIGN_REPORT": str(self.report)} if cache else {}
        self.report.write_text("")
        parts = [self.process(command, settings) for command in program]
        return [sum(column) for column in zip(*parts)]

    def counts(self):
        rows = [list(map(int, line.split())) for line in self.report.read_text().splitlines()]
        return [sum(column) for column in zip(*rows)]


STARTS = ["cold", "second", "third", "fourth", "fifth", "sixth"]


def measure(runs, program, rounds, starts):
    """Mode -> the rounds' (wall, cpu), and what each start through kiln compiled, found, bypassed."""
    taken = {mode: [] for mode in ["plain"] + starts}
    counts = {}
    for _ in range(rounds):
        cache = runs.scratch / "cache"
        shutil.rmtree(cache, ignore_errors=True)
        for mode in taken:
            taken[mode].append(runs.all(program, None if mode == "plain" else cache))
            counts[mode] = runs.counts()
            print(f"{mode}: wall and cpu {taken[mode][-1]}, compiled, found, bypassed {counts[mode]}",
                  file=sys.stderr, flush=True)
    return taken, counts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--starts", type=int, default=3, choices=range(1, len(STARTS) + 1))
    parser.add_argument("build", type=Path)
    parser.add_argument("programs", nargs="*",
                        default=["clpeak", "clpeak-compute", "ffmpeg", "clblast", "pyopencl"])
    arguments = parser.parse_args()
    layer = arguments.build.resolve() / "bench/libbench_foreign_through.so"
    if not layer.exists():
        sys.exit(f"foreign: {layer} is not built")
    starts = STARTS[:arguments.starts]
    print("| program | plain s, wall and cpu | " + " | ".join(f"{mode} / plain" for mode in starts) +
          " | compiled, found, start by start |")
    print("| --- | ---: |" + " ---: |" * len(starts) + " --- |")
    with tempfile.TemporaryDirectory(prefix="kiln-foreign-") as name:
        for program in arguments.programs:
            todo = commands(program, Path(name))
            if not todo:
                print(f"foreign: {program} is not installed", file=sys.stderr)
                continue
            taken, counts = measure(Runs(layer, Path(name)), todo, arguments.rounds, starts)

            def ratio(mode):
                return ", ".join(f"{statistics.median(a[i] / b[i] for a, b in zip(taken[mode], taken['plain'])):.2f}"
                                 for i in (0, 1))
            plain = ", ".join(f"{statistics.median(row[i] for row in taken['plain']):.1f}" for i in (0, 1))
            found = "; ".join(", ".join(map(str, counts[mode][:2])) for mode in starts)
            print(f"| {program} | {plain} | " + " | ".join(map(ratio, starts)) + f" | {found} |", flush=True)


main()
