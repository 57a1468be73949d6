#!/usr/bin/env python3
"""A static function's name has a verb and an object: two words, so that a backtrace and a grep find it."""
import re
import subprocess
import sys

STATIC = re.compile(r"^static (?!const\b.*=)[^=;{(]*?\b([a-z]\w*)\(", re.MULTILINE)


def main():
    files = subprocess.run(["git", "ls-files", "src/*.[ch]", "programs/*.[ch]"], check=True,
                           capture_output=True, text=True).stdout.split()
    bad = []
    for path in files:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for match in STATIC.finditer(text):
            if "_" not in match.group(1):
                line = text.count("\n", 0, match.start(1)) + 1
                bad.append(f"{path}:{line}: {match.group(1)}: one word; name its object, too")
    print("\n".join(bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
