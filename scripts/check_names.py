#!/usr/bin/env python3
"""A static function's name has a verb and an object (two words), so that a backtrace and a grep find it,
and is unique in its layer: src/store, src/backends/cuda, programs/kiln. Files of the same name stand for
each other on two systems (src/sys and src/sys/windows) and may share names; programs/kiln/windows is a layer
of its own."""
import collections
import re
import subprocess
import sys

STATIC = re.compile(r"^static (?!const\b.*=)[^=;{(]*?\b([a-z]\w*)\(", re.MULTILINE)


def layer_of(path):
    parts = path.split("/")
    return "/".join(parts[:3 if parts[1] == "backends" or parts[2] == "windows" else 2])


def main():
    files = subprocess.run(["git", "ls-files", "src/*.[ch]", "programs/*.[ch]"], check=True,
                           capture_output=True, text=True).stdout.split()
    where = collections.defaultdict(dict)
    bad = []
    for path in files:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for match in STATIC.finditer(text):
            name = match.group(1)
            place = f"{path}:{text.count(chr(10), 0, match.start(1)) + 1}"
            if "_" not in name:
                bad.append(f"{place}: {name}: one word; name its object, too")
            where[layer_of(path), name].setdefault(path, place)
    for (layer, name), places in sorted(where.items()):
        if len({path.replace("src/sys/windows/", "src/sys/") for path in places}) > 1:
            bad.append(f"{name} is the name of several functions in {layer}: "
                       + " ".join(sorted(places.values())))
    print("\n".join(bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
