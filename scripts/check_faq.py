#!/usr/bin/env python3
"""Every question of docs/faq.md has a row in tests/README.md, but for those under "Other questions", and every test in that
table exists: a function of tests/, or a name of CTest."""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FAQ, TABLE = ROOT / "docs/faq.md", ROOT / "tests/README.md"


def tests_there():
    tests = ROOT / "tests"
    there = set()
    for path in sorted(tests.rglob("*.[ch]")):
        text = path.read_text(errors="replace")
        there.update(re.findall(r"^(?:static )?void (\w+)\(void \*\*", text, re.M))
        there.update(re.findall(r"(?m)^(?:K[TS]_)?(?:TEST|REDIS|NGINX|BOTH)\w*\((?:\w+,\s+\w+,\s+)?(\w+)\)", text))
    for path in sorted(tests.rglob("CMakeLists.txt")):
        text = path.read_text()
        there.update(re.findall(r"\b(?:NAME|kiln_\w*test)\s*\(?\s*(\w+)", text))
        for pages in re.findall(r"foreach\(page ([^)]*)\)", text):
            there.update("guide_" + page.removesuffix("/README").split("/")[-1] for page in pages.split())
    there.update("cli_" + case.stem for case in (tests / "cli/cases").glob("*.sh"))
    return there


def main():
    there = tests_there()
    asked = FAQ.read_text(encoding="utf-8").split("## Other questions")[0]
    questions = set(re.findall(r"(?m)^\*\*(.*?)\*\*", asked))
    rows = dict(re.findall(r"(?m)^\| (.*?) \| (`.*`) \|$", TABLE.read_text(encoding="utf-8")))
    bad = [f"docs/faq.md: {question}: no row in tests/README.md" for question in sorted(questions - rows.keys())]
    bad += [f"tests/README.md: {question}: is not in docs/faq.md" for question in sorted(rows.keys() - questions)]
    named = [name for tests in rows.values() for name in re.findall(r"`(\w+)`", tests)]
    bad += [f"tests/README.md: there is no test {name}" for name in sorted({name for name in named if name not in there})]
    if len(questions) < 35 or len(named) < 100:
        bad.append("docs/faq.md, tests/README.md: hardly a question or a test is named")
    print("\n".join(bad))
    sys.exit(1 if bad else 0)


main()
