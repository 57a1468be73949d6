#!/usr/bin/env python3
"""Vulkan programs that nobody changed, with and without kiln: vulkan.py [--kiln KILN] [--runs N]
[--driver ICD.json] [--ncnn BUILD] [COMMAND ...]

Each COMMAND (one string; without any: vulkaninfo, vkcube, and ncnn's where its build is named) runs
N times in turns, each time in a process and with caches of its own:
  cold      no cache at all                  driver   the driver's own cache as its first run left it
  kiln      first run under kiln exec        warm     kiln's cache warm, the driver's empty
  off       under kiln exec with KILN_NO_CACHE, the driver's cache empty
Printed are medians of wall clock and processor time in ms, what kiln found, and whether the program
printed the same in all of them. `cold`, `kiln`, `warm` and `off` have the driver's cache empty."""
import argparse
import json
import os
import re
import resource
import shlex
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

COLUMNS = ("cold", "driver", "kiln", "warm", "off")


class Bench:
    def __init__(self, arguments, root):
        self.arguments, self.root, self.count = arguments, root, 0

    def fresh(self):
        self.count += 1
        path = self.root / f"cache{self.count}"
        path.mkdir()
        return str(path)

    def run(self, command, driver_cache, kiln_cache=None, **more):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("KILN_", "VK_"))}
        env |= {"MESA_SHADER_CACHE_DIR": driver_cache, "__GL_SHADER_DISK_CACHE_PATH": driver_cache,
                "XDG_RUNTIME_DIR": str(self.root), "KILN_CACHE_DIR": kiln_cache or "/nowhere", **more}
        if self.arguments.driver:
            env["VK_ICD_FILENAMES"] = self.arguments.driver
        report = self.root / "report.json"
        words = shlex.split(command)
        if kiln_cache is not None:
            words = [self.arguments.kiln, "exec", "--report", str(report), "--", *words]
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run(words, env=env, capture_output=True, text=True, errors="replace")
        took = time.perf_counter() - start
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode != 0:
            raise RuntimeError(f"{command}: {done.returncode}: {done.stderr[-300:]}")
        busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return {"wall": took * 1e3, "busy": busy * 1e3, "text": neutral(done.stdout),
                "kiln": json.loads(report.read_text()) if kiln_cache is not None else None}

    def program(self, command):
        rows = {column: [] for column in COLUMNS}
        driver, store = self.fresh(), self.fresh()
        self.run(command, self.fresh())  # the files of the page cache
        self.run(command, driver)
        self.run(command, self.fresh(), store)
        for _ in range(self.arguments.runs):
            rows["cold"].append(self.run(command, self.fresh()))
            rows["off"].append(self.run(command, self.fresh(), self.fresh(), KILN_NO_CACHE="1"))
            rows["driver"].append(self.run(command, driver))
            rows["kiln"].append(self.run(command, self.fresh(), self.fresh()))
            rows["warm"].append(self.run(command, self.fresh(), store))
        return rows


def neutral(text):
    """Without the times that a program prints, and what it says of its layers."""
    if "Device Properties and Extensions" in text:
        text = text[text.index("Device Properties and Extensions"):]
    return re.sub(r"\s*\d+\.\d+", "T", text)


def show(command, rows):
    same = len({row["text"] for column in rows.values() for row in column}) == 1
    kiln = rows["warm"][0]["kiln"]
    print(f"{command}: output {'equal' if same else 'DIFFERS'}; warm: hits {kiln['hits']}, "
          f"compiled {kiln['compiled']}, bypassed {kiln['bypassed']}")
    for what in ("wall", "busy"):
        cells = [statistics.median(row[what] for row in rows[column]) for column in COLUMNS]
        print(f"  {what:6s}" + "".join(f"{name:>8s} {cell:7.1f}" for name, cell in zip(COLUMNS, cells)),
              flush=True)


def open_screen():
    """Where there is no Xvfb, what needs no window can be measured all the same."""
    if shutil.which("Xvfb") is None:
        return None
    screen = subprocess.Popen(["Xvfb", "-displayfd", "1", "-noreset"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    os.environ["DISPLAY"] = f":{screen.stdout.readline().strip()}"
    return screen


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kiln", default=shutil.which("kiln") or "kiln")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--driver", help="the manifest of the driver to use")
    parser.add_argument("--ncnn", help="a build directory of ncnn")
    parser.add_argument("commands", nargs="*")
    arguments = parser.parse_args()
    commands = arguments.commands or ["vulkaninfo", "vkcube --c 10"]
    if arguments.ncnn and not arguments.commands:
        tests = Path(arguments.ncnn) / "tests"
        commands += [str(tests / name) for name in ("test_softmax", "test_gelu") if (tests / name).exists()]
    screen = open_screen()
    try:
        with tempfile.TemporaryDirectory() as root:
            bench = Bench(arguments, Path(root))
            for command in commands:
                show(command, bench.program(command))
    finally:
        if screen is not None:
            screen.kill()
            screen.wait()


if __name__ == "__main__":
    main()
