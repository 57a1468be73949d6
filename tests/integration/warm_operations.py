#!/usr/bin/env python3
"""warm_operations.py KILN: a start that finds its kernel on disk makes no more operations on files below
the cache's directory than it did before loads were watched, nor does a further kernel in the same
start. Counted by strace; speed itself is measured in bench/."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

# Of a whole start of one kernel on the fake backend, measured before loads were watched; and one fstat: whether the
# descriptor that is closed at the end is still kiln's (K11).
MOST_IN_A_START = 45 + 1
# Open, look, read and close for its entry and for its headers; its count of uses, read and written.
FOR_ANOTHER_KERNEL = 10
# A start that takes long writes its counters meanwhile, too: time adds operations, and takes none away.
TRIES = 5
CALL = re.compile(r"^\d+\s+(\w+)\(")


def skip(reason):
    print(f"SKIP warm_operations: {reason}")
    sys.exit(77)


def run(program, folder, names, trace=None):
    command = [program, "run", f"{folder}/k.json", "--backend", "fake", "--repeat", "1", "--no-check"]
    for name in names:
        command += ["--kernel", name]
    if trace is not None:
        command = ["strace", "-f", "-y", "-o", trace] + command
    environment = {**os.environ, "KILN_CACHE_DIR": f"{folder}/cache"}
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    if done.returncode != 0:
        sys.exit(f"{command} ended with {done.returncode}: {done.stderr}")
    return done.stdout


def count(program, folder, names):
    """The calls, by name, that name a path below the root or an open file there."""
    trace = f"{folder}/trace"
    out = run(program, folder, names, trace)
    if out.count("disk") != len(names):
        sys.exit(f"not from disk: {out}")
    calls = {}
    with open(trace, encoding="utf-8", errors="replace") as file:
        for line in file:
            call = CALL.match(line)
            if call is not None and f"{folder}/cache" in line:
                calls[call.group(1)] = calls.get(call.group(1), 0) + 1
    return calls


def count_least(program, folder, names):
    return min((count(program, folder, names) for _ in range(TRIES)),
               key=lambda calls: sum(calls.values()))


def main():
    program = sys.argv[1]
    if shutil.which("strace") is None:
        skip("there is no strace")
    probe = subprocess.run(["strace", "-o", "/dev/null", "true"], stderr=subprocess.PIPE, check=False)
    if probe.returncode != 0:
        skip(f"strace cannot trace here: {probe.stderr.decode(errors='replace').strip()}")
    with tempfile.TemporaryDirectory(prefix="kiln-operations-") as folder:
        kernels = []
        for i in range(6):
            with open(f"{folder}/k{i}.fake", "w", encoding="utf-8") as file:
                file.write(f"kernel work x:floats\nx = x {i + 2} +\n")
            kernels.append({"name": f"k{i}", "sources": {"fake": f"k{i}.fake"}, "entry": "work",
                            "args": [{"name": "x", "kind": "inout", "type": "f32", "shape": [16]}],
                            "launch": {"global": [16]}})
        with open(f"{folder}/k.json", "w", encoding="utf-8") as file:
            json.dump({"kiln_manifest": 1, "kernels": kernels}, file)
        for _ in range(3):
            run(program, folder, [f"k{i}" for i in range(6)])
        one = count_least(program, folder, ["k0"])
        two = count_least(program, folder, ["k0", "k1"])
        print(f"one kernel: {one}\ntwo kernels: {two}")
        if sum(one.values()) > MOST_IN_A_START:
            sys.exit(f"{sum(one.values())} operations on files in a warm start, more than "
                     f"{MOST_IN_A_START}")
        if sum(two.values()) - sum(one.values()) > FOR_ANOTHER_KERNEL:
            sys.exit(f"a further kernel costs more than {FOR_ANOTHER_KERNEL} operations")


main()
