#!/usr/bin/env python3
"""A function that a header of src declares stands in the .c file of the same name, or in one that the
header names, and a header's include guard says where the header lies: KILN_STORE_TIER_H is src/store/format/tier.h.
Prints every function that a reader would have to search for and every other guard, and exits 1 if there is one."""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMMENT = re.compile(r"/\*.*?\*/", re.S)
DIRECTIVE = re.compile(r"^[ \t]*#.*(?:\\\n.*)*", re.M)
BRACES = re.compile(r"\{[^{}]*\}")
DECLARED = re.compile(r"^(?!typedef|static)[a-z][^;()=]*?\b(kn_\w+)\(", re.M)
DEFINED = re.compile(r"^(?!static|typedef|extern|return)[A-Za-z_][^;{}()#=]*?\b(kn_\w+)\([^;{}]*\)\n\{",
                     re.M)
GUARD = re.compile(r"^#ifndef (KILN_\w+_H)$", re.M)


def guards(header):
    """The guards that a header may have: its layer and its name, with the directories between or without. What
    is of one API has all of them: KILN_OPENCL_LAYER_BUILD_H."""
    *rooms, name = [part.upper() for part in header.relative_to(ROOT / "src").with_suffix("").parts]
    if rooms[0] == "APIS":
        return {"_".join(["KILN", *rooms[1:], name, "H"])}
    return {"_".join(["KILN", *rooms[:i + 1], name, "H"]) for i in range(len(rooms))}


def declarations(text):
    """The functions declared outside of structs, macros and inline functions."""
    text = DIRECTIVE.sub("", COMMENT.sub("", text))
    while BRACES.search(text):
        text = BRACES.sub("", text)
    return DECLARED.findall(text)


def main():
    homes = {}  # function -> the .c files that define it, one for each system
    for path in sorted((ROOT / "src").rglob("*.c")):
        if "windows" not in path.parts:
            for name in DEFINED.findall(path.read_text()):
                homes.setdefault(name, []).append(path)
    bad = 0
    for header in sorted((ROOT / "src").rglob("*.h")):
        text = header.read_text()
        guard = GUARD.search(text)
        if guard and guard[1] not in guards(header):
            print(f"{header.relative_to(ROOT)}: the guard {guard[1]} is that of another file; use {min(guards(header))}")
            bad += 1
        for name in declarations(text) if "windows" not in header.parts else ():
            for home in homes.get(name, ()):
                if home != header.with_suffix(".c") and not re.search(rf"\b{home.name}\b", text):
                    print(f"{header.relative_to(ROOT)}: {name} is in {home.relative_to(ROOT)}, "
                          "which the header does not name")
                    bad += 1
    return 1 if bad else 0


sys.exit(main())
