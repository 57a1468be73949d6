#!/usr/bin/env python3
"""demo.py BUILD [MANIFEST]: runs the example kernels on every device, in two processes with one new
cache directory. Fails if a result is wrong, or if the second process compiled anything.

Each process gets driver caches of its own, empty ones, so that what is gained is kiln's."""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def driver_caches(folder):
    """Where the drivers keep caches of their own."""
    return {
        "POCL_CACHE_DIR": f"{folder}/pocl",
        "CUDA_CACHE_PATH": f"{folder}/cuda",
        "MESA_SHADER_CACHE_DIR": f"{folder}/mesa",
        "XDG_CACHE_HOME": folder,
    }


def environment_of(cache, folder):
    """The caller's, with new caches and without what would steer kiln elsewhere."""
    for path in driver_caches(folder).values():
        Path(path).mkdir(parents=True, exist_ok=True)
    environment = dict(os.environ, KILN_CACHE_DIR=cache, **driver_caches(folder))
    for variable in ("KILN_NO_CACHE", "KILN_RECACHE", "KILN_READONLY", "KILN_BACKEND",
                     "KILN_DEVICE", "KILN_PACKS", "KILN_REMOTE"):
        environment.pop(variable, None)
    return environment


def sound_backends(kiln, cache, folder):
    """Those whose probe, in a process of its own, ends well; a driver that crashes or hangs there
    would take the demo along."""
    done = subprocess.run([kiln, "doctor", "--json"], env=environment_of(cache, f"{folder}/doctor"),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    rows = json.loads(done.stdout)["backends"]
    for row in rows:
        if row["outcome"] in ("crashed", "timed out", "failed"):
            print(f"left out: {row['backend']}: {row['outcome']}: {row['why']}")
    return [row["backend"] for row in rows
            if row["outcome"] == "ready" and row["backend"] != "fake"]


def say(text):
    """What it is at, on a terminal only; an empty text takes it away."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def run_process(command, environment):
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, text=True)
    try:
        answer = json.loads(done.stdout)
    except json.JSONDecodeError as error:
        sys.exit(f"demo: kiln ended with {done.returncode} and no JSON ({error})\n{done.stdout}")
    return {(row["kernel"], row["backend"], row["device_index"]): row for row in answer["results"]}


def milliseconds(row):
    value = row.get("first_result_ms")
    return f"{value:.1f}" if value is not None else "-"


def times_faster(cold, warm):
    before, after = cold.get("first_result_ms"), warm.get("first_result_ms")
    return f"{before / after:.1f}x" if before and after else "-"


def largest_error(row):
    value = row.get("max_abs_error")
    return f"{value:.1e}" if value is not None else "-"


def print_table(cold, warm):
    lines = [("kernel", "device", "cold ms", "warm ms", "faster", "error", "")]
    for key, first in cold.items():
        second = warm.get(key, {})
        good = first.get("ok") and second.get("ok")
        device = f"{first['backend']}: {first['device']}"
        lines.append((first["kernel"], device[:44], milliseconds(first), milliseconds(second),
                      times_faster(first, second), largest_error(second),
                      "" if good else f"WRONG: {first.get('reason') or second.get('reason')}"))
    widths = [max(len(line[i]) for line in lines) for i in range(6)]
    for line in lines:
        cells = [line[i].ljust(widths[i]) if i < 2 else line[i].rjust(widths[i]) for i in range(6)]
        print("  ".join(cells) + ("  " + line[6] if line[6] else ""))


def judge(cold, warm):
    problems = []
    if not cold:
        problems.append("no kernel ran on any device")
    if cold.keys() != warm.keys():
        problems.append("the two processes did not run the same kernels")
    for name, rows in (("first", cold), ("second", warm)):
        for row in rows.values():
            if not row.get("ok"):
                problems.append(f"{name} process: {row['kernel']} on {row['device']}: "
                                f"{row.get('reason') or 'wrong result'}")
    compiled = sum(row.get("compiles", 0) for row in warm.values())
    if compiled:
        problems.append(f"the second process compiled {compiled} times")
    return problems


def main():
    build = Path(sys.argv[1]).resolve()
    manifest = sys.argv[2] if len(sys.argv) > 2 else ROOT / "kernels/manifest.json"
    command = [build / "programs/kiln/kiln", "run", manifest, "--all-devices", "--json"]
    with tempfile.TemporaryDirectory(prefix="kiln-demo-") as folder:
        cache = f"{folder}/cache"
        say("looking for devices")
        only = ",".join(sound_backends(command[0], cache, folder))
        answers = []
        for name, what in (("first", "1 of 2: each kernel is compiled"), ("second", "2 of 2: each kernel is found")):
            say(f"running the kernels, {what}")
            answers.append(run_process(command, dict(environment_of(cache, f"{folder}/{name}"), KILN_BACKEND=only)))
        say("")
        cold, warm = answers
    print_table(cold, warm)
    compiles = [sum(row.get("compiles", 0) for row in rows.values()) for rows in (cold, warm)]
    print(f"\ncompiled: {compiles[0]} in the first process, {compiles[1]} in the second."
          "\nms: from the kernel's text to its first result, with the device open. Each process had"
          "\nempty driver caches (PoCL, CUDA, Mesa), so what is gained is kiln's alone.")
    problems = judge(cold, warm)
    for problem in problems:
        print(f"demo: {problem}", file=sys.stderr)
    sys.exit(1 if problems else 0)


main()
