#!/usr/bin/env python3
"""tidy.py BUILD JOBS [FILE…]: clang-tidy over our files in the compile database. A file that was
clean is not looked at again until what the compiler sees of it, or the set of checks, has changed."""
import hashlib
import json
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The analyser follows each function through so many states, a third of its default: in the others it
# spent more than half of the time.
STATES = "max-nodes=75000"
ARGUMENTS = [f"--extra-arg={word}" for word in ("-Xclang", "-analyzer-config", "-Xclang", STATES)]


def rules():
    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, text=True).stdout
    tracked = subprocess.run(["git", "ls-files", "*.clang-tidy"], cwd=ROOT, capture_output=True,
                             text=True).stdout.split()
    return (STATES + version + "".join((ROOT / path).read_text() for path in tracked)).encode()


def digest(entry, base):
    """What clang-tidy's answer depends on: the preprocessed text, comments (NOLINT) included."""
    command = [word for word in shlex.split(entry["command"]) if word not in ("-c", "-Werror")]
    if command[0].endswith("ccache"):
        command = command[1:]
    if "-o" in command:
        at = command.index("-o")
        del command[at:at + 2]
    done = subprocess.run([*command, "-E", "-C", "-o", "-"], cwd=entry["directory"],
                          capture_output=True)
    return hashlib.sha256(base + done.stdout).hexdigest() if done.returncode == 0 else None


def run(entry, base, build, clean):
    stamp = digest(entry, base)
    if stamp and (clean / stamp).exists():
        return 0, ""
    done = subprocess.run(["clang-tidy", "--quiet", "-p", str(build), *ARGUMENTS, entry["file"]],
                          capture_output=True, text=True)
    if done.returncode == 0 and "warning:" not in done.stdout:
        if stamp:
            (clean / stamp).touch()
        return 0, ""
    return 1, done.stdout + (done.stderr if done.returncode else "")


def main():
    build, jobs, only = Path(sys.argv[1]).resolve(), int(sys.argv[2]), sys.argv[3:]
    clean = ROOT / "build/tidy"
    clean.mkdir(parents=True, exist_ok=True)
    entries = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = Path(entry["file"])
        if path.suffix != ".c" or build in path.parents or ROOT not in path.parents:
            continue
        if only and path.relative_to(ROOT).as_posix() not in only:
            continue
        entries.setdefault(entry["file"], entry)
    base = rules()
    with ThreadPoolExecutor(jobs) as pool:
        # The large files first: none of them is looked at alone in the end.
        order = sorted(entries.values(), key=lambda entry: -Path(entry["file"]).stat().st_size)
        results = list(pool.map(lambda entry: run(entry, base, build, clean), order))
    for _, text in results:
        if text:
            print(text)
    return 1 if any(code for code, _ in results) else 0


sys.exit(main())
