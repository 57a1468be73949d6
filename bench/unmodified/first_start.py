#!/usr/bin/env python3
"""What a first start costs more than without kiln: first_start.py [--kiln KILN] [--rounds N] [--ways WAY,...]
[--json FILE] [--command NAME=COMMAND ...] [PROGRAM ...]

A PROGRAM is a file of this directory and its words ("nvrtc fp16"), a COMMAND any other program. Each round starts each
way once, in an order that moves on by one, in a process of its own from an empty home and an empty cache; a start of
each way before the first round fills the page cache and Python's bytecode and is not counted. Homes are removed at the
end: ext4 makes a file more slowly where one was removed in the last seconds. The ways:
  plain      without kiln                        kiln       under kiln exec
  nocache    kiln exec with KILN_NO_CACHE=1      disabled   kiln exec with KILN_DISABLE=1
  nosync     kiln exec with KILN_FSYNC=0         memory     kiln exec, its cache in /dev/shm
  arena      plain with one malloc arena that gives nothing back
A line a way: medians (smallest to largest) in ms of the first result as the program says it, of the wall clock, and of
the processor time (user and system, of all its processes); page faults; the ratios to `plain`."""
import argparse
import importlib.util
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from run import HERE, environment

WAYS = {"plain": {}, "kiln": {}, "nocache": {"KILN_NO_CACHE": "1"}, "disabled": {"KILN_DISABLE": "1"},
        "nosync": {"KILN_FSYNC": "0"}, "memory": {},
        "arena": {"MALLOC_ARENA_MAX": "1", "MALLOC_TRIM_THRESHOLD_": "1073741824",
                  "MALLOC_TOP_PAD_": "67108864", "MALLOC_MMAP_THRESHOLD_": "1073741824"}}
NEEDS = {"nvrtc": None, "cupy_science": "cupy", "cupy_operations": "cupy", "triton_matmul": "triton",
         "jax_layers": "jax", "torch_compile": "torch", "cuda_core": "cuda.core"}
PROGRAMS = ["nvrtc plain", "nvrtc fp16", "nvrtc cub", "hiprtc_alone", "cupy_science", "triton_matmul", "jax_layers",
            "torch_compile", "cuda_core"]
FIGURES = ("ms", "wall", "cpu", "faults", "switches")


def is_there(module):
    try:
        return module is None or importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


class Starts:
    def __init__(self, kiln, root):
        self.kiln, self.root = kiln, root

    def variables(self, way):
        home = Path(tempfile.mkdtemp(prefix="home-", dir=self.root))
        env = environment(home, home / "kiln")
        env["PYTHONPYCACHEPREFIX"] = str(self.root / "bytecode")
        env.update(WAYS[way])
        if way == "memory":
            env["KILN_CACHE_DIR"] = tempfile.mkdtemp(prefix="kiln-first-", dir="/dev/shm")
        return env

    def start(self, way, command, counted=False):
        """One process: its figures, or with `counted` what kiln counted (a report has its own cost)."""
        env, report = self.variables(way), self.root / "report.json"
        report.unlink(missing_ok=True)
        if way not in ("plain", "arena"):
            command = [self.kiln, "exec", *(["--report", str(report)] if counted else []), "--", *command]
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            began = time.perf_counter()
            process = subprocess.Popen(command, env=env, cwd=HERE, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            wall = time.perf_counter() - began
            if way == "memory":
                shutil.rmtree(env["KILN_CACHE_DIR"], ignore_errors=True)
            for file in (out, err):
                file.seek(0)
            printed, said = out.read().decode(errors="replace"), err.read().decode(errors="replace")
        if process.returncode != 0:
            raise RuntimeError((said or printed).strip().splitlines()[-1:])
        row = {"wall": 1e3 * wall, "cpu": 1e3 * (usage.ru_utime + usage.ru_stime), "user": 1e3 * usage.ru_utime,
               "faults": usage.ru_minflt, "switches": usage.ru_nvcsw + usage.ru_nivcsw}
        last = printed.strip().splitlines()[-1:]
        if last and last[0].startswith("{"):
            row.update(json.loads(last[0]))
        if report.exists():
            counts = json.loads(report.read_text())
            row["kiln"] = {name: counts[name] for name in ("hits", "compiled", "bypassed")}
        return row

    def rounds(self, command, ways, count):
        rows = {way: [] for way in ways}
        counts = {way: self.start(way, command, True).get("kiln") for way in ways}
        for i in range(count):
            for j in range(len(ways)):
                way = ways[(i + j) % len(ways)]
                rows[way].append(self.start(way, command))
                if counts[way]:
                    rows[way][-1]["kiln"] = counts[way]
        return rows


def show(name, rows):
    base = {figure: statistics.median(row.get(figure, 0) for row in rows["plain"]) for figure in FIGURES}
    digests = {row.get("digest") for starts in rows.values() for row in starts}
    print(f"{name}{'' if len(digests) == 1 else '  RESULTS DIFFER'}", flush=True)
    for way, starts in rows.items():
        line = f"  {way:9s}"
        for figure in FIGURES:
            values = [row.get(figure, 0) for row in starts]
            middle = statistics.median(values)
            ratio = middle / base[figure] if base[figure] else 0.0
            spread = f" ({min(values):.0f}-{max(values):.0f})" if figure in ("ms", "wall", "cpu") else ""
            line += f"  {figure} {middle:.0f}{spread} {ratio:.3f}"
        counts = starts[-1].get("kiln")
        line += f"  compiled {counts['compiled']}, bypassed {counts['bypassed']}" if counts else ""
        print(line, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kiln", default="kiln")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ways", default="plain,kiln")
    parser.add_argument("--command", action="append", default=[])
    parser.add_argument("--json")
    parser.add_argument("programs", nargs="*")
    arguments = parser.parse_args()
    ways = list(dict.fromkeys(["plain", *arguments.ways.split(",")]))
    commands = {}
    for name in arguments.programs or ([] if arguments.command else PROGRAMS):
        file, *words = name.split()
        if is_there(NEEDS.get(file)):
            commands[name] = [sys.executable, str(HERE / f"{file}.py"), *words]
        else:
            print(f"{name}\n  not run: {NEEDS[file]} is not installed", flush=True)
    commands.update((pair.split("=", 1)[0], shlex.split(pair.split("=", 1)[1])) for pair in arguments.command)
    root = Path(tempfile.mkdtemp(prefix="kiln-first-start-"))
    everything = {}
    kiln = shutil.which(arguments.kiln)
    try:
        for name, command in commands.items():
            try:
                everything[name] = Starts(os.path.abspath(kiln), root).rounds(command, ways, arguments.rounds)
                show(name, everything[name])
            except RuntimeError as error:
                print(f"{name}\n  not run: {error}", flush=True)
            if arguments.json:
                Path(arguments.json).write_text(json.dumps(everything), encoding="utf-8")
    finally:
        shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
