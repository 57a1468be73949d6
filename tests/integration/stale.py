#!/usr/bin/env python3
"""stale.py KILN: a compiler that changes under a running cache. What was used is compiled again by `kiln warm --stale`,
used most first; programs then hit, and so they do with the first compiler, which came back."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

KILN = sys.argv[1]
TARGET = "cpu:x86-64-v2" if os.uname().machine == "x86_64" else "cpu"
SOURCE = """#include <kiln_kernel.h>
KILN_KERNEL({name}, KILN_INOUT(float, y))
{{
    KILN_ITEMS_X(i)
    {{
        y[i] = {value}.0f;
    }}
}}
"""


class World:
    def __init__(self, root):
        self.root = Path(root)
        self.cache = self.root / "cache"
        for value, name in enumerate(("rare", "often", "last")):
            (self.root / f"{name}.c").write_text(SOURCE.format(name=name, value=value))

    def run(self, compiler, *command):
        env = {k: v for k, v in os.environ.items() if not k.startswith("KILN_")}
        env.update({"KILN_CACHE_DIR": str(self.cache), "KILN_CC": compiler, "KILN_KEEP_SOURCES": "1"})
        done = subprocess.run([KILN, *command], cwd=self.root, env=env, capture_output=True, text=True, timeout=250)
        assert done.returncode == 0, (command, done.stdout[-1500:], done.stderr[-1500:])
        return done.stdout

    def use(self, compiler, name):
        """What a program that uses this kernel has of it: "compiled" or "disk"."""
        told = json.loads(self.run(compiler, "compile", "-t", TARGET, f"{name}.c", "-o", f"{name}.o", "--json"))
        return told["files"][0]["origin"] if "files" in told else told["origin"]

    def stale(self, compiler):
        told = json.loads(self.run(compiler, "warm", "--stale", "--within", "30d", "--json", "-j1"))
        assert told["failed"] == 0 and told["skipped"] == 0, told
        return [(row["kernel"], row["result"], row["key"]) for row in told["kernels"]]

    def age(self, days):
        """Moves all uses of the recording so far into the past."""
        then = time.time() - 86400 * days
        for use in (self.cache / "recording" / "uses").glob("*/*"):
            os.utime(use, (then, then))


def main():
    first, second = shutil.which("gcc"), shutil.which("clang")
    if first is None or second is None:
        print("SKIP: gcc and clang are not both installed")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as root:
        world = World(root)
        names = ("rare", "often", "last")
        assert [world.use(first, name) for name in names] == 3 * ["compiled"]
        for days in (9, 7):  # two days more of one, and then one of another
            world.age(days)
            assert world.use(first, "often") == "disk"
        world.age(2)
        assert world.use(first, "last") == "disk"
        order = ["./often.c", "./last.c", "./rare.c"]
        assert world.stale(first) == [(name, "there", "recorded") for name in order], world.stale(first)
        assert world.stale(second) == [(name, "compiled", "other") for name in order]
        assert [world.use(second, name) for name in names] == 3 * ["disk"]
        # Now each has a key of either compiler: one row stands for both.
        assert world.stale(second) == [(name, "there", "recorded") for name in order], world.stale(second)
        assert [world.use(first, name) for name in names] == 3 * ["disk"]
        (world.root / "last.c").unlink()  # the recording has it
        assert [row[1] for row in world.stale(first)] == 3 * ["there"]
        print("ok: gcc, clang and gcc again under one cache")


main()
