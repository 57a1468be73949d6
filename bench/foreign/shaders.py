#!/usr/bin/env python3
"""shaders.py [--rounds N] BUILD JOBS...: other people's shaders to SPIR-V, a process each, as a build system does it:
with glslc, with kiln from an empty cache on, and with kiln again. By hand:

    apt-get install glslc
    python3 bench/foreign/shaders.py build/release ggml.jobs ncnn.jobs

A line of JOBS is one shader: glslc's arguments with tabs between them, without -o. bench/foreign/glslc.sh writes such
a file in a build that takes it for glslc. The runs of a round follow one another, and the table has medians of the
rounds' ratios; "cpu" is processor time, user and system, of all processes, "wall" the time that passed."""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path


class Shaders:
    def __init__(self, build, jobs, scratch):
        self.kiln = build.resolve() / "programs/kiln/kiln"
        self.jobs = [line.split("\t") for line in jobs.read_text().splitlines() if line]
        self.folder, self.scratch = jobs.resolve().parent, scratch
        self.failed = {}

    def outputs(self, mode):
        return [self.scratch / mode / f"{i}.spv" for i in range(len(self.jobs))]

    def compile_all(self, mode):
        """Seconds on the clock and of processor time."""
        begin = [["glslc"], [str(self.kiln), "compile", "--target", "vulkan:spirv"]][mode != "plain"]
        environment = dict(os.environ, HOME=str(self.scratch), KILN_CACHE_DIR=str(self.scratch / "cache"))
        shutil.rmtree(self.scratch / mode, ignore_errors=True)
        (self.scratch / mode).mkdir()
        self.failed[mode] = 0
        wall, busy = time.monotonic(), sum(os.times()[2:4])
        for job, output in zip(self.jobs, self.outputs(mode)):
            self.failed[mode] += subprocess.run(
                begin + job + ["-o", output], cwd=self.folder, env=environment, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode != 0
        return time.monotonic() - wall, sum(os.times()[2:4]) - busy

    def counts(self):
        """Compiled, found, built without the cache, by all processes so far."""
        told = subprocess.run([self.kiln, "stats", "--json", "--cache-dir", self.scratch / "cache"],
                              capture_output=True, check=True)
        stats = json.loads(told.stdout)["counters"]
        return [stats["compiles"], stats["hits_disk"] + stats["hits_memory"], stats["bypassed"]]

    def equal(self, mode):
        return sum(a.exists() and b.exists() and a.read_bytes() == b.read_bytes()
                   for a, b in zip(self.outputs("plain"), self.outputs(mode)))


def measure(shaders, rounds):
    taken, warm = {"plain": [], "cold": [], "warm": []}, []
    for _ in range(rounds):
        shutil.rmtree(shaders.scratch / "cache", ignore_errors=True)
        for mode, times in taken.items():
            before = shaders.counts() if mode == "warm" else None
            times.append(shaders.compile_all(mode))
            if before:
                warm = [now - then for now, then in zip(shaders.counts(), before)]
    return taken, warm


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("build", type=Path)
    parser.add_argument("jobs", type=Path, nargs="+")
    arguments = parser.parse_args()
    if shutil.which("glslc") is None:
        sys.exit("foreign: glslc is not installed")
    print("| shaders | number | plain s, wall and cpu | cold / plain | warm / plain | warm: compiled, found, bypassed | "
          "glslc's bytes: cold, warm |")
    print("| --- | ---: | ---: | ---: | ---: | --- | --- |")
    for jobs in arguments.jobs:
        with tempfile.TemporaryDirectory(prefix="kiln-foreign-") as name:
            shaders = Shaders(arguments.build, jobs, Path(name))
            taken, warm = measure(shaders, arguments.rounds)

            def ratio(mode):
                return ", ".join(f"{statistics.median(a[i] / b[i] for a, b in zip(taken[mode], taken['plain'])):.2f}"
                                 for i in (0, 1))
            plain = ", ".join(f"{statistics.median(row[i] for row in taken['plain']):.1f}" for i in (0, 1))
            number = str(len(shaders.jobs)) + (f" ({shaders.failed['plain']} do not compile)"
                                               if any(shaders.failed.values()) else "")
            print(f"| {jobs.stem} | {number} | {plain} | {ratio('cold')} | {ratio('warm')} | "
                  f"{', '.join(map(str, warm))} | {shaders.equal('cold')}, {shaders.equal('warm')} |", flush=True)


main()
