#!/usr/bin/env python3
"""main.py KILN LIBEXEC [--compilers NAME,...] [--seed N] [--cases N] [--seconds S] [--first N] [--plant] [--verbose]: answers
through a cache against the compiler without one. A scenario is a tree, a source, options and variables, which change some
times; after each change, a case, both are asked. They must be equal where the compiler repeats itself. A finding names its
seed and its scenario: `--seed N --first SCENARIO --cases 1` plays that scenario alone.

--plant changes a header in a way that no file system shows: this must be found."""
import argparse
import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from compilers import COMPILERS, Absent  # noqa: E402
from world import World  # noqa: E402

CHANGES = 7


class Count:
    def __init__(self):
        self.cases = self.good = self.unsteady = self.findings = 0


def compare(compiler, steps):
    """None if the answers are equal; "unsteady" if the compiler's own differ; else both."""
    served = compiler.through(steps)
    alone = compiler.alone(steps)
    for _ in range(4):
        if served == alone:
            return None, alone
        before, served, alone = alone, compiler.through(steps), compiler.alone(steps)
        if served != alone and before != alone:
            unsteady = True
        else:
            unsteady = False
    if served == alone:
        return None, alone
    return ("unsteady" if unsteady else (served, alone)), alone


def is_good(said):
    last = said[-1]
    return last.get("compile") == 0 if isinstance(last, dict) else last[0] == "good"


def report(compiler, name, settings, scenario, world, steps, both):
    print(f"DIFFERS: {name}: seed {settings.seed}, scenario {scenario}, options {compiler.options}")
    for kind, said in zip(("kiln", "alone"), both):
        print(f"  {kind}: {json.dumps(said)[:1500]}")
    print("\n".join(world.describe()))
    print(f"  steps in the process: {len(steps)}", flush=True)


def play_scenario(compiler, name, settings, scenario, count, folder, until):
    draw = random.Random(f"{settings.seed} {name} {scenario}")
    with tempfile.TemporaryDirectory(dir=folder, prefix="s") as root:
        world = World(draw, os.path.realpath(root), compiler.language)
        compiler.draw_options(world)
        before = None
        for turn in range(CHANGES):
            if turn > 0:
                world.change(compiler.changes(world))
            step = compiler.step(world)
            # At times the process has compiled something before.
            steps = [before, step] if before is not None and draw.random() < 0.15 else [step]
            before = step
            both, alone = compare(compiler, steps)
            count.cases += 1
            count.good += is_good(alone)
            if both == "unsteady":
                count.unsteady += 1
            elif both is not None:
                count.findings += 1
                report(compiler, name, settings, scenario, world, steps, both)
                return
            if time.monotonic() > until or count.cases >= settings.cases > CHANGES:
                return


def play(name, settings):
    """The number of findings; None where the compiler is not here."""
    count, start = Count(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kiln-answers-", dir="/dev/shm" if settings.plant and os.path.isdir("/dev/shm") else None) as folder:
        compiler = COMPILERS[name](settings.kiln, settings.libexec, folder)
        try:
            compiler.start()
        except Absent as why:
            print(f"{name} is left out: {why}")
            return None
        scenario = settings.first
        if settings.plant:
            count.findings = play_plant(compiler, settings, folder)
        while not settings.plant and count.cases < settings.cases and time.monotonic() - start < settings.seconds:
            try:
                play_scenario(compiler, name, settings, scenario, count, folder, start + settings.seconds)
            except Absent as why:
                print(f"{name} is left out: {why}")
                return None
            scenario += 1
        compiler.close()
    print(f"{name}: seed {settings.seed}, {count.cases} cases, {count.good} compiled, {compiler.hits} hits, {compiler.stored} stored, "
          f"{compiler.bypassed} past the cache, {count.unsteady} not repeated by the compiler, {count.findings} DIFFER", flush=True)
    if settings.plant:
        return int(count.findings == 0)
    return count.findings + (count.cases > 60 and compiler.hits == 0)


def play_plant(compiler, settings, folder):
    """A header on a tmpfs is changed through a mapping made before, which moves no time stamp."""
    import mmap
    draw = random.Random(settings.seed)
    with tempfile.TemporaryDirectory(dir=folder, prefix="s") as root:
        world = World(draw, os.path.realpath(root), compiler.language)
        header = world.root / "one/planted.h"
        header.write_text("#define PLANTED 111\n" + "\n" * 4096)
        world.source = '#include "planted.h"\nextern "C" __global__ void k(int *x) { x[0] = PLANTED; }\n'
        world.name, compiler.options = "k.cu", ["--gpu-architecture=compute_90", f"-I{world.root}/one"]
        with open(header, "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
            mapped[16] = ord("1")  # the page is writable from now on
            time.sleep(0.1)
            stamp = header.stat().st_mtime_ns
            steps = [compiler.step(world)]
            both, _ = compare(compiler, steps)
            if both is not None:
                print("the planted source differs before it was changed")
                return 0
            time.sleep(2.5)  # until a stamp is old enough to be believed
            both, _ = compare(compiler, steps)
            mapped[16] = ord("9")
            if header.stat().st_mtime_ns != stamp:
                print("SKIP this file system shows what a mapping writes")
                sys.exit(77)
            both, _ = compare(compiler, steps)
            if both is not None:
                print("found: the planted change")
            return int(both is not None)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kiln")
    parser.add_argument("libexec")
    parser.add_argument("--compilers", default=",".join(COMPILERS))
    parser.add_argument("--seed", type=int, default=int(os.environ.get("KILN_TEST_SEED", time.time_ns() % 10**9)))
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--cases", type=int, default=10**9)
    parser.add_argument("--seconds", type=float, default=10**9)
    parser.add_argument("--plant", action="store_true")
    settings = parser.parse_args()
    settings.kiln = os.path.abspath(settings.kiln)
    found = [play(name, settings) for name in settings.compilers.split(",")]
    if all(one is None for one in found):
        sys.exit(77)
    sys.exit(1 if any(found) else 0)


if __name__ == "__main__":
    main()
