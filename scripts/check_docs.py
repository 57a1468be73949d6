#!/usr/bin/env python3
"""Every public function carries the four contract lines: Threads, Blocks, Owns, Fails. A comment
serves the declarations that follow it up to the next blank line. Each contract begins a line, and each
public struct, enum and class has a comment before it."""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LABELS = ("Threads:", "Blocks:", "Owns:", "Fails:")
LABEL_FIRST = re.compile(r" \* (Threads|Blocks|Owns): ")
NAME = re.compile(r"\b(kiln_\w+)\s*\(")


def check(path):
    bad = []
    served = []  # labels seen in this paragraph
    comment = False
    text = path.read_text().splitlines()
    for number, line in enumerate(text, 1):
        if not line.strip() and not comment:
            served = []
        if "/*" in line:
            comment = True
        if comment:
            served += [label for label in LABELS if label in line]
            comment = "*/" not in line
            continue
        if line.startswith("KILN_API"):
            missing = [label for label in LABELS if label not in served]
            name = NAME.search(" ".join(text[number - 1:number + 3]))
            if missing:
                bad.append(f"{path.relative_to(ROOT)}:{number}: {name.group(1) if name else line}: "
                           f"no {' '.join(missing)}")
    return bad


def check_types(path):
    bad, before = [], ""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if re.match(r"(typedef (struct|enum|union) \w+ \{|(class|struct) \w+( : .*)?$)", line) \
                and not before.rstrip().endswith("*/") and not before.startswith("template"):
            bad.append(f"{path.relative_to(ROOT)}:{number}: no comment: {line}")
        before = line
        if re.search(r"^ \* .*\S (Threads|Owns|Fails): ", line) and not LABEL_FIRST.match(line):
            bad.append(f"{path.relative_to(ROOT)}:{number}: a contract begins a line: {line}")
    return bad


def main():
    bad = []
    for path in sorted((ROOT / "include/kiln").rglob("*.h")):
        bad += check(path) + check_types(path)
    for path in sorted((ROOT / "include/kiln").rglob("*.hpp")):
        bad += check_types(path)
    print("\n".join(bad))
    return 1 if bad else 0


sys.exit(main())
