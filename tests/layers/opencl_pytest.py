#!/usr/bin/env python3
"""opencl_pytest.py [--python PYTHON] [--jobs N] [--starts N] [--limit SECONDS] LAYER TESTS [FILE ...]: pyopencl's
own tests without kiln and under its layer, test by test. By hand; not a part of the CI.

LAYER is libkiln-opencl.so, TESTS the directory `test` of pyopencl's source, in the version that is installed.
The tests of the FILEs (all test_*.py) are dealt out to N processes (1), which run at once: first without
kiln, then in so many starts under the layer (3) with one cache, the driver's own cache empty before
each. pyopencl's own cache is off, since it makes every source another one. Printed are, of each round, the
processes' time, and what was compiled and found; 1 is returned where a test gave another verdict with kiln.
Of a test that differs the verdicts are printed, with those of two more rounds without kiln: some tests
are decided by chance."""
import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


class Round:
    def __init__(self, arguments, root):
        self.arguments, self.root, self.made = arguments, Path(root), 0

    def environment(self, layered):
        self.made += 1
        home = self.root / f"home{self.made}"
        home.mkdir()
        env = {k: v for k, v in os.environ.items() if not k.startswith(("KILN_", "OPENCL_LAYERS"))}
        env.update(HOME=str(home), XDG_CACHE_HOME=str(home), POCL_CACHE_DIR=str(home), CUDA_CACHE_PATH=str(home),
                   PYOPENCL_NO_CACHE="1", PYTHONDONTWRITEBYTECODE="1")
        report = home / "report"
        report.write_text("")
        if layered:
            env.update(OPENCL_LAYERS=self.arguments.layer, KILN_CACHE_DIR=str(self.root / "kiln"),
                       KILN_EXEC_REPORT=str(report))
        return env, report

    def process(self, layered, tests):
        env, report = self.environment(layered)
        command = [self.arguments.python, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", "--tb=no", *tests]
        try:
            done = subprocess.run(command, cwd=self.arguments.tests, env=env, capture_output=True, text=True,
                                  errors="replace", timeout=self.arguments.limit)
            said = done.stdout
        except subprocess.TimeoutExpired as late:
            said = (late.stdout or b"").decode(errors="replace")
        verdicts = {m[2]: m[1] for m in re.finditer(r"^(PASSED|FAILED|ERROR|XFAIL|XPASS) (\S+::.*?)(?: - .*)?$",
                                                    said, re.M)}
        origins = [line.split("\t")[1] for line in report.read_text().splitlines()]
        return verdicts, Counter(origins)

    def run(self, name, layered, share):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        verdicts, origins = {}, Counter()
        with ThreadPoolExecutor(self.arguments.jobs) as pool:
            for some, kinds in pool.map(lambda tests: self.process(layered, tests), share):
                verdicts |= some
                origins += kinds
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(f"{name:12s}{busy:8.1f} s of the processor, {time.monotonic() - start:6.1f} s;",
              ", ".join(f"{kind} {n}" for kind, n in sorted(Counter(verdicts.values()).items())), ";",
              ", ".join(f"{kind} {n}" for kind, n in sorted(origins.items())) or "no kiln", flush=True)
        return verdicts


def collect(arguments):
    files = arguments.files or sorted(path.name for path in Path(arguments.tests).glob("test_*.py"))
    done = subprocess.run([arguments.python, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", *files],
                          cwd=arguments.tests, capture_output=True, text=True)
    tests = [line for line in done.stdout.splitlines() if "::" in line and not line.startswith(("ERROR", "FAILED"))]
    if not tests:
        sys.exit(f"no tests: {done.stdout[-2000:]} {done.stderr[-2000:]}")
    return tests


def differ(plain, row):
    return {test for test in plain.keys() | row.keys() if plain.get(test) != row.get(test)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", default="/usr/bin/python3")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--limit", type=int, default=1800)
    parser.add_argument("layer")
    parser.add_argument("tests")
    parser.add_argument("files", nargs="*")
    arguments = parser.parse_args()
    tests = collect(arguments)
    parts = max(1, min(len(tests), 1 if arguments.jobs == 1 else 4 * arguments.jobs))
    share = [tests[i::parts] for i in range(parts)]
    print(f"{len(tests)} tests in {parts} processes, {arguments.jobs} at once")
    with tempfile.TemporaryDirectory() as root:
        runs = Round(arguments, root)
        plain = runs.run("without", False, share)
        starts = []
        for i in range(arguments.starts):
            starts.append(runs.run(f"start {i + 1}", True, share))
            print(f"{len(differ(plain, starts[-1]))} differ", flush=True)
        differing = sorted({test for row in starts for test in differ(plain, row)})
        again = [runs.run("without", False, [differing]) for _ in range(2)] if differing else []
    wrong = 0
    for test in differing:
        given = {plain.get(test), *(row.get(test) for row in again)}
        with_kiln = [row.get(test) for row in starts]
        wrong += not set(with_kiln) <= given
        print(f"{test}: without {plain.get(test)}, {[row.get(test) for row in again]}, with kiln {with_kiln}")
    print(f"{len(differing)} differ, {wrong} by kiln")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
