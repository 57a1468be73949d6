#!/usr/bin/env python3
"""Every test that docs/faq.md names exists: a function of tests/, or a name of CTest."""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FAQ = ROOT / "docs/faq.md"


def main():
    tests = ROOT / "tests"
    there = set()
    for path in sorted(tests.rglob("*.[ch]")):
        there.update(re.findall(r"^(?:static )?void (\w+)\(void \*\*", path.read_text(errors="replace"), re.M))
        there.update(re.findall(r"\bTEST\w*\((\w+)\)", path.read_text(errors="replace")))
    for path in sorted(tests.rglob("CMakeLists.txt")):
        text = path.read_text()
        there.update(re.findall(r"\b(?:NAME|kiln_\w*test)\s*\(?\s*(\w+)", text))
    there.update("cli_" + case.stem for case in (tests / "cli/cases").glob("*.sh"))
    there.update("guide_" + page.stem for page in (ROOT / "docs/guide").glob("*.md"))
    named = re.findall(r"`([A-Za-z]\w+_\w+|demo|openmetrics)`", FAQ.read_text(encoding="utf-8"))
    named = [name for name in named if not name.startswith(("KILN_", "kiln_"))
             and not name.startswith("__")]
    bad = sorted({name for name in named if name not in there})
    for name in bad:
        print(f"docs/faq.md: there is no test {name}")
    if len(named) < 40:
        print("docs/faq.md: hardly a test is named")
    sys.exit(1 if bad or len(named) < 40 else 0)


main()
