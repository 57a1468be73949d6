#!/usr/bin/env python3
"""A function that a header of src declares stands in the .c file of the same name, or in one that the
header names. Prints every function that a reader would have to search for, and exits 1 if there is one."""
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
        for name in declarations(text) if "windows" not in header.parts else ():
            for home in homes.get(name, ()):
                if home != header.with_suffix(".c") and not re.search(rf"\b{home.name}\b", text):
                    print(f"{header.relative_to(ROOT)}: {name} is in {home.relative_to(ROOT)}, "
                          "which the header does not name")
                    bad += 1
    return 1 if bad else 0


sys.exit(main())
