#!/usr/bin/env python3
"""Vulkan programs that nobody changed, with and without kiln: vulkan.py [--kiln KILN] [--runs N]
[--driver ICD.json] [--ncnn BUILD] [--ggml BUILD] [--deqp PROGRAM] [COMMAND ...]

Each COMMAND (one string; without any: vulkaninfo, vkcube, and those of the builds that are named) runs
N times in turns, each time in a process and with caches of its own:
  cold      no cache at all                  driver   the driver's own cache as its first run left it
  kiln      first run under kiln exec        warm     kiln's cache warm, the driver's empty
  off       under kiln exec with KILN_NO_CACHE, the driver's cache empty
  four      as warm, four processes at once until the last has exited
Printed are medians of wall clock and processor time in ms (smallest to largest), what kiln found, and
whether the program printed the same in all of them. All but `driver` have the driver's cache empty.
With --count it is the instructions of the program itself, by Valgrind: without kiln, under its layer,
and under the layer with KILN_NO_CACHE. They do not depend on what else the machine does."""
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

COLUMNS = ("cold", "driver", "kiln", "warm", "off", "four")
AT_ONCE = 4


class Bench:
    def __init__(self, arguments, root):
        self.arguments, self.root, self.made = arguments, root, 0

    def fresh(self):
        self.made += 1
        path = self.root / f"cache{self.made}"
        path.mkdir()
        return str(path)

    def environment(self, driver_cache, kiln_cache, **more):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("KILN_", "VK_"))}
        env |= {"MESA_SHADER_CACHE_DIR": driver_cache, "__GL_SHADER_DISK_CACHE_PATH": driver_cache,
                "GGML_VK_VISIBLE_DEVICES": "0", "XDG_RUNTIME_DIR": str(self.root),
                "KILN_CACHE_DIR": kiln_cache or "/nowhere", **more}
        if self.arguments.driver:
            env["VK_ICD_FILENAMES"] = self.arguments.driver
        return env

    def run(self, command, driver_cache, kiln_cache=None, count=1, **more):
        """So many processes at once, of which the first one's output is kept."""
        env = self.environment(driver_cache, kiln_cache, **more)
        report = self.root / "report.json"
        words = shlex.split(command)
        if kiln_cache is not None:
            words = [self.arguments.kiln, "exec", "--report", str(report), "--", *words]
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        others = [subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                  for _ in range(count - 1)]
        done = subprocess.run(words, env=env, cwd=self.root, capture_output=True, text=True, errors="replace")
        codes = [done.returncode] + [other.wait() for other in others]
        took = time.perf_counter() - start
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if any(codes):
            raise RuntimeError(f"{command}: {codes}: {done.stderr[-300:]}")
        busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return {"wall": took * 1e3, "busy": busy * 1e3, "text": neutral(done.stdout),
                "kiln": json.loads(report.read_text()) if kiln_cache is not None else None}

    def count(self, command, layer, **more):
        """Instructions in user space."""
        env = self.environment(self.fresh(), str(self.root / "counted"), **more)
        if layer:
            libexec = Path(self.arguments.kiln).resolve().parent.parent / "libexec" / "kiln"
            env |= {"VK_ADD_LAYER_PATH": str(libexec / "vulkan" / "1"),
                    "VK_INSTANCE_LAYERS": "VK_LAYER_KILN_cache"}
        done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
                               *shlex.split(command)], env=env, capture_output=True, text=True)
        return int(re.search(r"Collected : (\d+)", done.stderr)[1])

    def counts(self, command):
        self.count(command, True)
        return [self.count(command, False), self.count(command, True),
                self.count(command, True, KILN_NO_CACHE="1")]

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
            rows["four"].append(self.run(command, self.fresh(), store, AT_ONCE))
        return rows


def neutral(text):
    """Without the times that a program prints, and what it says of its layers."""
    if "Device Properties and Extensions" in text:
        text = text[text.index("Device Properties and Extensions"):]
    text = re.sub(r"(?m)^.*#(session|begin|end).*$", "", text)
    return re.sub(r"\s*\d+\.\d+", "T", text)


def show(command, rows):
    same = len({row["text"] for column in rows.values() for row in column}) == 1
    kiln = rows["warm"][0]["kiln"]
    print(f"{command}: output {'equal' if same else 'DIFFERS'}; warm: hits {kiln['hits']}, "
          f"compiled {kiln['compiled']}, bypassed {kiln['bypassed']}")
    for what in ("wall", "busy"):
        print(f"  {what}")
        for name in COLUMNS:
            values = [row[what] for row in rows[name]]
            print(f"    {name:8s}{statistics.median(values):9.0f} ({min(values):.0f} to {max(values):.0f})",
                  flush=True)


def show_counts(command, counts):
    plain, layer, off = counts
    print(f"{command}: {plain / 1e6:.1f} million; layer {layer / plain - 1:+.2%}, off {off / plain - 1:+.2%}",
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
    parser.add_argument("--ggml", help="a build directory of ggml with its Vulkan backend")
    parser.add_argument("--deqp", help="deqp-vk, of VK-GL-CTS")
    parser.add_argument("--count", action="store_true", help="count instructions instead")
    parser.add_argument("commands", nargs="*")
    arguments = parser.parse_args()
    commands = arguments.commands or ["vulkaninfo", "vkcube --c 10"]
    if arguments.ncnn and not arguments.commands:
        tests = Path(arguments.ncnn) / "tests"
        commands += [str(tests / name) for name in ("test_softmax", "test_gelu") if (tests / name).exists()]
    if arguments.ggml and not arguments.commands:
        commands.append(f"{arguments.ggml}/bin/test-backend-ops test -b Vulkan0 -o SOFT_MAX")
    if arguments.deqp and not arguments.commands:
        commands.append(f"{arguments.deqp} --deqp-case=dEQP-VK.compute.basic.* --deqp-log-images=disable "
                        "--deqp-shadercache=disable --deqp-log-filename=/dev/null")
    screen = open_screen()
    try:
        with tempfile.TemporaryDirectory() as root:
            bench = Bench(arguments, Path(root))
            for command in commands:
                if arguments.count:
                    show_counts(command, bench.counts(command))
                else:
                    show(command, bench.program(command))
    finally:
        if screen is not None:
            screen.kill()
            screen.wait()


if __name__ == "__main__":
    main()
