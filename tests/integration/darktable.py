#!/usr/bin/env python3
"""darktable.py KILN KERNELS…: real OpenCL kernels that nobody here wrote, with shared headers, through
`kiln compile`. KERNELS are folders to look in; the first that exists is copied and used.

  first pass              every kernel that the driver can compile is compiled, once
  second pass             all hits
  headers touched         all hits: time stamps are no identity
  one byte of a header    exactly the kernels that reach it are compiled again

Counters are the judge (`kiln stats --json`), not times."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def skip(reason):
    required = "opencl" in os.environ.get("KILN_REQUIRE", "").split(",") and "OpenCL" in reason
    print(f"{'REQUIRED' if required else 'SKIP'} {reason}")
    sys.exit(1 if required else 77)


class Kiln:
    def __init__(self, program, folder):
        self.program = program
        self.folder = folder
        self.environment = dict(os.environ, KILN_CACHE_DIR=f"{folder}/cache",
                                POCL_CACHE_DIR=f"{folder}/pocl")
        (folder / "pocl").mkdir()

    def run(self, *arguments):
        return subprocess.run([self.program, *arguments], env=self.environment, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=120)

    def compiles(self):
        done = self.run("stats", "--json")
        if done.returncode != 0:
            return 0  # no cache yet
        counters = json.loads(done.stdout)["counters"]
        if counters["bypassed"] or counters["corrupt"]:
            sys.exit(f"went past the cache, or damaged it: {counters}")
        return counters["compiles"]

    def compile(self, source):
        """Whether it could be compiled, and how many compiles that took."""
        before = self.compiles()
        done = self.run("compile", "--backend", "opencl", "-I", str(source.parent), str(source),
                        "-o", str(self.folder / "out.bin"))
        if done.returncode != 0:
            print(f"{source.name}: {done.stderr.strip().splitlines()[0:1]}")
        return done.returncode == 0, self.compiles() - before


def reached(source):
    """Names of the headers that a file includes, directly or not."""
    found, todo = set(), [source]
    while todo:
        for name in INCLUDE.findall(todo.pop().read_text(errors="replace")):
            header = source.parent / name
            if name not in found and header.is_file():
                found.add(name)
                todo.append(header)
    return found


def a_pass(kiln, sources, name):
    """Compiles all; returns those that took a compile, checked to be one each."""
    compiled = set()
    for source in sources:
        good, count = kiln.compile(source)
        if not good or count > 1:
            sys.exit(f"{name}: {source.name}: good {good}, {count} compiles")
        if count:
            compiled.add(source)
    print(f"{name}: {len(compiled)} of {len(sources)} compiled", flush=True)
    return compiled


def expect(name, got, want):
    if got != want:
        names = [sorted(path.name for path in part) for part in (got - want, want - got)]
        sys.exit(f"{name}: compiled without need: {names[0]}; not compiled: {names[1]}")


def change_one_byte(header):
    """Another character in the first comment: what the compiler sees stays the same, the file does
    not."""
    data = bytearray(header.read_bytes())
    at = re.search(rb"/\*[^*]*?([a-z])", data).start(1)
    data[at] = ord("b") if data[at] != ord("b") else ord("c")
    header.write_bytes(data)


def main():
    origin = next((Path(path) for path in sys.argv[2:] if Path(path).is_dir()), None)
    if origin is None:
        skip("darktable: its kernels are not here (./dev test gets them)")
    with tempfile.TemporaryDirectory(prefix="kiln-darktable-") as name:
        folder = Path(name)
        kiln = Kiln(sys.argv[1], folder)
        if kiln.run("devices", "--backend", "opencl", "--json").returncode != 0:
            skip("opencl: no OpenCL device")
        shutil.copytree(origin, folder / "kernels")
        sources = sorted((folder / "kernels").glob("*.cl"))
        good = [source for source in sources if kiln.compile(source)[0]]
        print(f"first pass: {len(good)} of {len(sources)} kernels compiled")
        if len(good) < 30 or kiln.compiles() != len(good):
            sys.exit(f"first pass: {kiln.compiles()} compiles for {len(good)} kernels")
        expect("second pass", a_pass(kiln, good, "second pass"), set())
        for header in (folder / "kernels").glob("*.h"):
            header.touch()
        expect("touched", a_pass(kiln, good, "headers touched"), set())
        header = folder / "kernels/noise_generator.h"
        users = {source for source in good if header.name in reached(source)}
        if not 0 < len(users) < len(good):
            sys.exit(f"{header.name} is reached by {len(users)} kernels: choose another")
        change_one_byte(header)
        expect("one byte", a_pass(kiln, good, f"one byte of {header.name}"), users)


main()
