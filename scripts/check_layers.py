#!/usr/bin/env python3
"""Checks scripts/layers.txt: who includes whom, whose vendor headers, and that system headers and
OS #ifdefs stay in src/sys. Prints every edge that should not be, and exits 1 if there is one."""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
OS_IFDEF = re.compile(r"^\s*#\s*(if|ifdef|ifndef|elif)\b.*\b(_WIN32|_WIN64|__linux__|__APPLE__|"
                      r"__unix__|__FreeBSD__|__ANDROID__|_GNU_SOURCE|_POSIX_C_SOURCE)\b")
FEATURE_MACRO = re.compile(r"^\s*#\s*define\s+(_GNU_SOURCE|_POSIX_C_SOURCE|_XOPEN_SOURCE|"
                           r"_DEFAULT_SOURCE)\b")
OS_HEADER = re.compile(r"^(unistd|pthread|dlfcn|fcntl|dirent|spawn|poll|pwd|ucontext|windows|link|elf|"
                       r"signal|sched|ftw|glob|grp|io|direct)\.h$|^(sys|linux|mach)/")
# Visibility is the one thing that public headers must ask the system about.
OS_FREE = ("src/sys/", "tests/", "bench/", "examples/", "include/kiln/export.h",
           "programs/kiln/cli/host.c", "programs/kiln/cli/host_interrupt.c", "programs/kiln/cli/host_split.c",
           "programs/kiln/windows/",
           "programs/kiln/ship/client.c", "programs/kiln/ship/scratch.c", "programs/kiln/ship/ship_recording.c",
           "programs/kiln/exec/", "src/interpose/", "src/apis/cuda/shim/",
           "src/apis/hip/shim/",  # what is preloaded is of Linux alone
           "programs/kiln-")  # programs of their own, run by the library


def read_law():
    layers, vendors, publics = [], [], []
    for line in (ROOT / "scripts/layers.txt").read_text().splitlines():
        line = line.split("#")[0].strip()
        if not line:
            continue
        left, right = (part.split() for part in line.split(":"))
        if left[0] == "vendor":
            vendors.append((left[1], right))
        elif left[0] == "public":
            publics.append((left[1] + "/", right))
        else:
            layers.append((left[0], right))
    layers.sort(key=lambda row: -len(row[0]))
    return layers, vendors, publics


def layer_of(path, layers):
    """The row a file belongs to, and the directory that the row's '*' stands for."""
    for pattern, allowed in layers:
        expression = re.escape(pattern).replace(r"\*", "[^/]+") + "/"
        match = re.match(expression, path)
        if match:
            return match.group(0).rstrip("/"), allowed
    return None, None


def resolve(name, includer):
    """The file of the project that a quoted include means, or None."""
    for root in ("include", "src", "", "tests", "kernels", "kernels/include", "programs/kiln", "programs", str(Path(includer).parent)):
        candidate = Path(root) / name
        if (ROOT / candidate).is_file():
            return candidate.as_posix()
    return None


def check_public(path, name, publics):
    for folder, allowed in publics:
        if path.startswith(folder) and name not in allowed:
            return f"of the public headers {folder} may include only: {' '.join(allowed)}"
    return None


def check_edge(path, name, layers, publics):
    if ".." in name.split("/"):
        return 'includes are rooted, without ".."'
    target = resolve(name, path)
    if target is None and name.endswith(".spv.inc"):
        return None  # made by the build
    if target is None:
        return "no such file in the project"
    if path.startswith("src/") and "/" not in name:
        return "includes are rooted at src"
    if target.startswith("include/kiln/"):
        return check_public(path, name, publics)
    folder, allowed = layer_of(path, layers)
    if folder is None and path.startswith("src/"):
        return "scripts/layers.txt has no row for this directory"
    if folder is None or target.startswith(folder + "/") or "*" in allowed:
        return None
    if any(target == to or target.startswith(to + "/") for to in allowed):
        return None
    return f"{folder} may include only: {' '.join(allowed) or 'itself'}"


def check_vendor(path, name, vendors):
    for prefix, allowed in vendors:
        if name.startswith(prefix) and not any(path.startswith(to + "/") for to in allowed):
            return f"{prefix} belongs to: {' '.join(allowed) or 'nobody (own declarations)'}"
    if OS_HEADER.search(name) and not path.startswith(OS_FREE):
        return "system headers are for src/sys"
    return None


def check_line(path, line, law):
    layers, vendors, publics = law
    include = INCLUDE.match(line)
    if include:
        quote, name = include.groups()
        if quote == '"' or name.startswith("kiln/"):
            return check_edge(path, name, layers, publics)
        return check_vendor(path, name, vendors)
    if path.startswith(OS_FREE):
        return None
    if OS_IFDEF.match(line):
        return "OS #ifdefs are for src/sys"
    if FEATURE_MACRO.match(line):
        return "feature macros are for src/sys and tests"
    return None


def main():
    law = read_law()
    files = subprocess.run(["git", "ls-files", "*.c", "*.h", "*.def"], cwd=ROOT, check=True,
                           capture_output=True, text=True).stdout.split()
    bad = 0
    for path in files:
        if not (ROOT / path).is_file():
            continue
        for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
            reason = check_line(path, line, law)
            if reason:
                print(f"{path}:{number}: {line.strip()}: {reason}")
                bad += 1
    return 1 if bad else 0


sys.exit(main())
