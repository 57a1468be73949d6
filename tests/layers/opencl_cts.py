#!/usr/bin/env python3
"""opencl_cts.py LAYER DIRECTORY [OUT]: the compiler and api tests of the OpenCL CTS, each by itself,
under the layer and twice without it. By hand; not a part of the CI: it takes half an hour.

LAYER is libkiln-opencl.so, DIRECTORY where the CTS was built (github.com/KhronosGroup/OpenCL-CTS):

    cmake -S OpenCL-CTS -B DIRECTORY -DCL_INCLUDE_DIR=OpenCL-Headers -DCL_LIB_DIR=/usr/lib/x86_64-linux-gnu \\
        -DOPENCL_LIBRARIES=OpenCL -DSPIRV_INCLUDE_DIR=SPIRV-Headers -DSPIRV_TOOLS_DIR=/usr/bin
    cmake --build DIRECTORY --target test_compiler test_api

Written is a table of Markdown: what a test gave on the driver, with kiln and an empty cache, with
kiln and what was in it by then. A test that differs runs once more without kiln: some are decided by
a timer or by what PoCL finds in its directory. 1 is returned where one differs from both."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BINARIES = ("compiler", "api")
LIMIT = int(os.environ.get("CTS_LIMIT", "240"))  # seconds a test


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
    def __init__(self, root, layer):
        self.root, self.layer = Path(root), layer

    def run(self, program, name, layered, cache):
        """One test with an empty directory of the driver's; the layer's is `cache`."""
        driver = self.root / "driver"
        shutil.rmtree(driver, ignore_errors=True)
        driver.mkdir()
        env = {k: v for k, v in os.environ.items() if not k.startswith(("KILN_", "OPENCL_LAYERS"))}
        env.update(POCL_CACHE_DIR=str(driver), HOME=str(driver), POCL_MEMORY_LIMIT="1")
        report = self.root / "report"
        report.write_text("")
        if layered:
            env.update(OPENCL_LAYERS=self.layer, KILN_CACHE_DIR=str(self.root / cache),
                       KILN_EXEC_REPORT=str(report))
        try:
            done = subprocess.run([program, name], cwd=program.parent, env=env, text=True,
                                  errors="replace", capture_output=True, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            done = None
        origins = [line.split("\t")[1] for line in report.read_text().splitlines()]
        return verdict_of(done), origins


def main():
    layer, built = sys.argv[1], Path(sys.argv[2])
    out = open(sys.argv[3], "w") if len(sys.argv) > 3 else sys.stdout
    only = sys.argv[4:]
    differing = 0
    with tempfile.TemporaryDirectory() as root:
        place = Place(root, layer)
        for binary in BINARIES:
            program = next(built.rglob(f"test_{binary}"))
            print(f"| test_{binary} | driver | kiln, cold | kiln, again | compiled | hits | bypassed |",
                  "| --- | --- | --- | --- | ---: | ---: | ---: |", sep="\n", file=out)
            for name in names_of(program):
                if only and name not in only:
                    continue
                start = time.monotonic()
                plain, _ = place.run(program, name, False, "")
                if plain == "timeout":
                    print(f"| {name} | over {LIMIT} s | | | | | |", file=out, flush=True)
                    continue
                shutil.rmtree(place.root / "kiln", ignore_errors=True)
                cold, first = place.run(program, name, True, "kiln")
                warm, second = place.run(program, name, True, "kiln")
                mark = ""
                if not plain == cold == warm:
                    again, _ = place.run(program, name, False, "")
                    mark = f" (differs; without kiln again: {again})"
                    differing += not {cold, warm} <= {plain, again}
                both = first + second
                hits = sum(o in ("disk", "memory", "pack", "shared") for o in both)
                print(f"| {name}{mark} | {plain} | {cold} | {warm} | {both.count('compiled')} | {hits}"
                      f" | {both.count('bypassed')} |", file=out, flush=True)
                print(f"{binary} {name}: {plain} {cold} {warm} {time.monotonic() - start:.0f} s",
                      file=sys.stderr, flush=True)
    print(f"{differing} differ", file=sys.stderr)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
