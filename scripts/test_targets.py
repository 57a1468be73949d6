#!/usr/bin/env python3
"""test_targets.py BUILD [ARG...]: what ninja has to build for the tests that `ctest ARG...` chooses, a line a target: the
programs, files and directories of BUILD in their commands and environments. A test that is given the whole of BUILD
needs `all`; one that is a script may start any of the fakes in tests/support."""
import re
import subprocess
import sys
from pathlib import Path

BUILD = Path(sys.argv[1]).resolve()
FAKES = "tests/support/"


def chosen_tests():
    told = subprocess.run(["ctest", "--test-dir", str(BUILD), "-N", *sys.argv[2:]], check=True, capture_output=True,
                          text=True).stdout
    return set(re.findall(r"^ +Test +#\d+: (\S+)", told, re.M))


def built_files():
    """What is linked or made by a command, as ninja names it."""
    told = subprocess.run(["ninja", "-C", str(BUILD), "-t", "targets", "all"], check=True, capture_output=True,
                          text=True).stdout
    rows = (line.rsplit(": ", 1) for line in told.splitlines() if ": " in line)
    return {name for name, rule in rows if "_LINKER" in rule or (rule == "CUSTOM_COMMAND" and "CMakeFiles" not in name)}


def mentioned(names):
    """The test, and each path below BUILD that its line has."""
    path = re.compile(re.escape(str(BUILD)) + r"(?:/([^\";: $\\)]*))?(?=[\";: $\\)])")
    for file in BUILD.rglob("CTestTestfile.cmake"):
        for line in file.read_text().splitlines():
            found = re.match(r"(add_test|set_tests_properties)\((?:\[=*\[)?([^\s\]]+)", line)
            if found and found.group(2) in names:
                line = re.sub(r"WORKING_DIRECTORY \"[^\"]*\"", "", line)
                yield found.group(1), line, [(place or "").rstrip("/") for place in path.findall(line)]


def main():
    files = built_files()
    targets = set()
    for kind, line, places in mentioned(chosen_tests()):
        for place in places:
            below = {file for file in files if file == place or file.startswith(place + "/")}
            targets |= {"all"} if place == "" else below
        if kind == "add_test" and not any(re.search(rf'add_test\(\S+ +"{re.escape(str(BUILD / file))}"', line)
                                          for file in places if file in files):
            targets |= {file for file in files if file.startswith(FAKES)}
    print("\n".join(["all"] if "all" in targets else sorted(targets)))


main()
