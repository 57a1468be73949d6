#!/usr/bin/env python3
"""darktable.py [--every N] KILN KERNELS…: real OpenCL kernels that nobody here wrote, with shared headers,
through `kiln compile`. KERNELS are directories to look in; the first that exists is copied and used.
One in N files (default 4) is compiled, as compiling all takes minutes; each has a key.

  first pass              every file that the driver can compile is compiled, once
  second pass             all hits
  headers touched         all hits and the same keys: time stamps are no identity
  one byte of a header    exactly the files that reach it have another key; for one header those are
                          compiled again

Keys and counters are the judge (`kiln stats --json`), not times."""
import argparse
import json
import os
import re
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import patience

JOBS = os.cpu_count() or 1
LIMIT_S = 300
COMPILED_AFTER = "rgb_norms.h"
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def skip(reason):
    required = "opencl" in os.environ.get("KILN_REQUIRE", "").split(",") and "OpenCL" in reason
    print(f"{'REQUIRED' if required else 'SKIP'} {reason}")
    sys.exit(1 if required else 77)


class Kiln:
    def __init__(self, program, folder):
        self.program = program
        self.folder = folder

    def run(self, *arguments, number=0):
        """PoCL 3.1 now and then fails a build when processes share its own cache: each has one of
        its own."""
        pocl = self.folder / f"pocl-{number}"
        pocl.mkdir(exist_ok=True)
        environment = dict(os.environ, KILN_CACHE_DIR=f"{self.folder}/cache",
                           POCL_CACHE_DIR=str(pocl))
        return patience.run([self.program, *map(str, arguments)], LIMIT_S, env=environment)

    def compiles(self):
        counters = json.loads(self.run("stats", "--json").stdout)["counters"]
        if counters["bypassed"] or counters["corrupt"]:
            sys.exit(f"went past the cache, or damaged it: {counters}")
        return counters["compiles"]

    def keys(self, sources):
        """File -> key. A bypassed one has none."""
        done = self.run("explain", "-b", "opencl", "-I", sources[0].parent, "--json", *sources)
        try:
            rows = json.loads(done.stdout)["explanations"]
        except ValueError:
            sys.exit(f"kiln explain: no JSON: {done.stdout[:300]} {done.stderr[:1000]}")
        return {Path(row["what"]): row["key"] if row["why"] != "never cached" else None
                for row in rows}

    def compile(self, sources):
        """What `kiln compile` says of each file; several processes at once, as many as there are
        processors."""
        shares = [sources[i::JOBS] for i in range(JOBS) if sources[i::JOBS]]

        def compile_share(number):
            share = shares[number]
            done = self.run("compile", "--backend", "opencl", "--json", "-j", "1", "-I",
                            share[0].parent, *share, number=number)
            try:
                return json.loads(done.stdout)["files"]
            except ValueError:
                sys.exit(f"kiln compile ended with {done.returncode}: {done.stdout[:300]} "
                         f"{done.stderr[-1000:]}")

        with ThreadPoolExecutor(JOBS) as pool:
            answers = pool.map(compile_share, range(len(shares)))
            return {Path(row["file"]): row for rows in answers for row in rows}


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


def a_pass(kiln, sources, name, before):
    """Compiles all; returns those that took a compile, checked against the cache's own count."""
    rows = kiln.compile(sources)
    bad = [str(path) for path, row in rows.items() if not row["ok"]]
    compiled = {path for path, row in rows.items() if row["origin"] == "compiled"}
    count = kiln.compiles() - before
    if bad or len(rows) != len(sources) or count != len(compiled):
        sys.exit(f"{name}: failed: {bad}; {len(compiled)} of {len(rows)} say compiled, the cache "
                 f"counted {count}")
    print(f"{name}: {len(compiled)} of {len(sources)} compiled", flush=True)
    return compiled


def expect(name, got, want):
    if got != want:
        names = [sorted(path.name for path in part) for part in (got - want, want - got)]
        sys.exit(f"{name}: compiled without need: {names[0]}; not compiled: {names[1]}")


def changed(kiln, sources, keys):
    now = kiln.keys(sources)
    return {source for source in sources if now[source] != keys[source]}


def change_one_byte(header):
    """Another character in the first comment: what the compiler sees stays the same, the file does
    not."""
    data = bytearray(header.read_bytes())
    comment = re.search(rb"/\*[^*]*?([a-z])|//[^\n]*?([a-z])", data)
    at = comment.start(comment.lastindex)
    data[at] = ord("b") if data[at] != ord("b") else ord("c")
    header.write_bytes(data)


def check(kiln, kernels, every):
    sources = sorted(kernels.glob("*.cl"))
    keys = kiln.keys(sources)
    expect("keys", {source for source in sources if keys[source]}, set(sources))
    # The largest first, so that the processes end together.
    some = sorted(sources[::every], key=lambda path: -path.stat().st_size)
    rows = kiln.compile(some)
    good = [path for path in some if rows[path]["ok"]]
    for path in some:
        if path not in good:
            print(f"the driver cannot compile {path.name}: {rows[path]['reason']}")
    count = kiln.compiles()
    print(f"first pass: {count} compiles for {len(good)} of {len(some)} files, of {len(sources)}")
    if len(good) * every < 30 or count != len(good):
        sys.exit("first pass: one compile each was expected")
    expect("second pass", a_pass(kiln, good, "second pass", count), set())
    for header in kernels.glob("*.h"):
        header.touch()
    expect("touched", a_pass(kiln, good, "headers touched", count), set())
    expect("touched, keys", changed(kiln, sources, keys), set())
    for header in sorted(kernels.glob("*.h")):
        users = {source for source in sources if header.name in reached(source)}
        text = header.read_bytes()
        change_one_byte(header)
        expect(f"one byte of {header.name}, keys", changed(kiln, sources, keys), users)
        if header.name == COMPILED_AFTER:
            again = users & set(good)
            if not 0 < len(again) < len(good):
                sys.exit(f"{header.name} is reached by {len(again)} files: choose another")
            expect("one byte", a_pass(kiln, good, f"one byte of {header.name}", count), again)
        header.write_bytes(text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", type=int, default=4)
    parser.add_argument("kiln")
    parser.add_argument("kernels", nargs="+", type=Path)
    arguments = parser.parse_args()
    origin = next((path for path in arguments.kernels if path.is_dir()), None)
    if origin is None:
        skip("darktable: its kernels are not here (./dev test gets them)")
    with tempfile.TemporaryDirectory(prefix="kiln-darktable-") as name:
        folder = Path(name)
        kiln = Kiln(arguments.kiln, folder)
        if kiln.run("devices", "--backend", "opencl", "--json").returncode != 0:
            skip("opencl: no OpenCL device")
        shutil.copytree(origin, folder / "kernels")
        check(kiln, folder / "kernels", arguments.every)


main()
