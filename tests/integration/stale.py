#!/usr/bin/env python3
"""stale.py KILN TAPE: a compiler that changes under a running cache. What was used is compiled again by `kiln warm --stale`,
used most first; programs then hit, and so they do with the first compiler, which came back."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

KILN, TAPE = sys.argv[1:3]
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

    def run(self, compiler, *command, code=0):
        env = {k: v for k, v in os.environ.items() if not k.startswith("KILN_")}
        env.update({"KILN_CACHE_DIR": str(self.cache), "KILN_CC": compiler, "KILN_KEEP_SOURCES": "1"})
        done = subprocess.run([KILN, *command], cwd=self.root, env=env, capture_output=True, text=True, timeout=250)
        assert done.returncode == code, (command, done.stdout[-1500:], done.stderr[-1500:])
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


def check_device(root):
    """A driver's new version may call its device otherwise."""
    world = World(root)
    found = [line.split() for line in world.run("gcc", "devices", "-b", "opencl").splitlines() if line.startswith("opencl:")]
    target = next((word for row in found for word in row if word.startswith("opencl-pocl-")), None)
    if target is None:
        print("skipped: opencl: no device of PoCL")
        return
    (world.root / "k.cl").write_text("__kernel void k(__global int *a) { *a = 1; }\n")
    for name in ("opencl-pocl-gone", "opencl-other-lost"):
        subprocess.run([TAPE, world.cache / "recording", "opencl", "opencl:" + name, "1", "k.cl"], cwd=root, check=True)
    told = json.loads(world.run("gcc", "warm", "--stale", "--json"))
    rows = sorted((row["target"], row["result"]) for row in told["kernels"])
    assert rows == [("opencl:opencl-other-lost", "skipped"), ("opencl:" + target, "compiled")], rows
    told = json.loads(world.run("gcc", "warm", world.cache / "recording", "--json", code=3))
    assert [row["result"] for row in told["kernels"]] == 2 * ["skipped"], told  # only where it was asked for
    print("ok: a device of another name")


def check_compilers(root):
    """Uses of one, two and three days; then the other compiler, and the first one again."""
    first, second = shutil.which("gcc"), shutil.which("clang")
    if first is None or second is None:
        print("skipped: cpu: gcc and clang are not both installed")
        return
    world = World(root)
    names, order = ("rare", "often", "last"), ("./often.c", "./last.c", "./rare.c")
    assert [world.use(first, name) for name in names] == 3 * ["compiled"]
    for days in (9, 7):
        world.age(days)
        assert world.use(first, "often") == "disk"
    world.age(2)
    assert world.use(first, "last") == "disk"
    assert world.stale(first) == [(name, "there", "recorded") for name in order]
    assert world.stale(second) == [(name, "compiled", "other") for name in order]
    assert [world.use(second, name) for name in names] == 3 * ["disk"]
    # Now each has a key of either compiler: one row stands for both.
    assert world.stale(second) == [(name, "there", "recorded") for name in order]
    assert [world.use(first, name) for name in names] == 3 * ["disk"]
    (world.root / "last.c").unlink()  # the recording has it
    assert [row[1] for row in world.stale(first)] == 3 * ["there"]
    print("ok: gcc, clang and gcc again under one cache")


for check in (check_compilers, check_device):
    with tempfile.TemporaryDirectory() as folder:
        check(folder)
