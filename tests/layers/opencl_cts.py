#!/usr/bin/env python3
"""opencl_cts.py [--groups compiler,api,basic] [--jobs N] [--limit SECONDS] [--out FILE] LAYER DIRECTORY
[TEST ...]: tests of the OpenCL CTS, each by itself, under the layer and twice without it. By hand; not a
part of the CI: it takes half an hour.

LAYER is libkiln-opencl.so, DIRECTORY where the CTS was built (github.com/KhronosGroup/OpenCL-CTS):

    cmake -S OpenCL-CTS -B DIRECTORY -DCL_INCLUDE_DIR=OpenCL-Headers -DCL_LIB_DIR=/usr/lib/x86_64-linux-gnu \\
        -DOPENCL_LIBRARIES=OpenCL -DSPIRV_INCLUDE_DIR=SPIRV-Headers -DSPIRV_TOOLS_DIR=/usr/bin
    cmake --build DIRECTORY --target test_compiler test_api test_basic

Written is a table of Markdown: what a test gave on the driver, with kiln and an empty cache, with
kiln and what was in it by then. A test that differs runs once more without kiln: some are decided by
a timer or by what PoCL finds in its directory. 1 is returned where one differs from both.
--jobs runs so many tests at once (1), each with caches of its own."""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def names_of(program):
    done = subprocess.run([program, "--help"], cwd=program.parent, capture_output=True, text=True)
    after = done.stdout.split("Test names")[-1]
    return re.findall(r"^\t(\w+)$", after, re.M)


def verdict_of(done):
    if done is None:
        return "timeout"
    if done.returncode < 0:
        return f"signal {-done.returncode}"
    text = done.stdout + done.stderr
    if re.search(r"^\S+ FAILED", text, re.M) or done.returncode != 0:
        return "failed"
    if re.search(r"^\S+ (skipped|test not supported)", text, re.M):
        return "skipped"
    return "passed" if re.search(r"^\S+ passed", text, re.M) else "nothing said"


class Place:
    def __init__(self, root, layer, limit):
        self.root, self.layer, self.limit = Path(root), layer, limit
        self.root.mkdir()

    def run(self, program, name, layered, cache):
        """One test with an empty directory of the driver's; the layer's is `cache`."""
        driver = self.root / "driver"
        shutil.rmtree(driver, ignore_errors=True)
        driver.mkdir()
        env = {k: v for k, v in os.environ.items() if not k.startswith(("KILN_", "OPENCL_LAYERS"))}
        env.update(POCL_CACHE_DIR=str(driver), CUDA_CACHE_PATH=str(driver), HOME=str(driver),
                   POCL_MEMORY_LIMIT="1")
        report = self.root / "report"
        report.write_text("")
        if layered:
            env.update(OPENCL_LAYERS=self.layer, KILN_CACHE_DIR=str(self.root / cache),
                       KILN_EXEC_REPORT=str(report))
        try:
            done = subprocess.run([program, name], cwd=program.parent, env=env, text=True,
                                  errors="replace", capture_output=True, timeout=self.limit)
        except subprocess.TimeoutExpired:
            done = None
        origins = [line.split("\t")[1] for line in report.read_text().splitlines()]
        return verdict_of(done), origins


def compare(program, name, place):
    """A row of the table, and whether kiln made a difference."""
    plain, _ = place.run(program, name, False, "")
    if plain == "timeout":
        return f"| {name} | over {place.limit} s | | | | | |", False
    cold, first = place.run(program, name, True, "kiln")
    warm, second = place.run(program, name, True, "kiln")
    mark, differs = "", False
    if not plain == cold == warm:
        again, _ = place.run(program, name, False, "")
        mark = f" (differs; without kiln again: {again})"
        differs = not {cold, warm} <= {plain, again}
    both = first + second
    hits = sum(o in ("disk", "memory", "pack", "shared") for o in both)
    row = (f"| {name}{mark} | {plain} | {cold} | {warm} | {both.count('compiled')} | {hits}"
           f" | {both.count('bypassed')} |")
    return row, differs


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--groups", default="compiler,api")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--limit", type=int, default=240)
    parser.add_argument("--out", type=argparse.FileType("w"), default=sys.stdout)
    parser.add_argument("layer")
    parser.add_argument("directory", type=Path)
    parser.add_argument("tests", nargs="*")
    arguments = parser.parse_args()
    differing = 0
    with tempfile.TemporaryDirectory() as root, ThreadPoolExecutor(arguments.jobs) as pool:
        for group in arguments.groups.split(","):
            program = next(arguments.directory.rglob(f"test_{group}"))
            names = [name for name in names_of(program) if not arguments.tests or name in arguments.tests]
            print(f"| test_{group} | driver | kiln, cold | kiln, again | compiled | hits | bypassed |",
                  "| --- | --- | --- | --- | ---: | ---: | ---: |", sep="\n", file=arguments.out)
            places = [Place(f"{root}/{group}-{name}", arguments.layer, arguments.limit) for name in names]
            for row, differs in pool.map(compare, [program] * len(names), names, places):
                differing += differs
                print(row, file=arguments.out, flush=True)
                print(f"{group} {row}", file=sys.stderr, flush=True)
    print(f"{differing} differ", file=sys.stderr)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
