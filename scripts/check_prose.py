#!/usr/bin/env python3
"""Finds comments that the formatter has broken: a section banner longer than a line, and an example
in a comment that runs into the text after it (an empty comment line keeps them apart)."""
import re
import subprocess
import sys

BANNER = re.compile(r"^\s*/\* -{3}(?P<rest>.*)$")
EXAMPLE = re.compile(r"^\s*(/\*|\*)\s{3,}\S")
TEXT = re.compile(r"^\s*\* [^\s/]")


def problems(lines):
    for number, line in enumerate(lines, 1):
        banner = BANNER.match(line)
        if banner and not line.endswith("--- */"):
            yield number, "a banner is one line of at most 100 columns that ends with '--- */'"
        if number < len(lines) and EXAMPLE.match(line) and TEXT.match(lines[number]):
            yield number + 1, "an empty comment line must part an example from the text after it"


def main():
    files = subprocess.run(["git", "ls-files", "*.c", "*.h", "*.def", "*.hpp"], check=True,
                           capture_output=True, text=True).stdout.split()
    found = 0
    for name in files:
        if name.startswith("tests/golden/"):
            continue
        with open(name, encoding="utf-8") as file:
            lines = file.read().split("\n")
        for number, what in problems(lines):
            print(f"{name}:{number}: {what}")
            found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
