#!/usr/bin/env python3
"""Every link of a page to another file of this tree leads somewhere, its heading included."""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(page):
    headings = re.findall(r"(?m)^#+ (.*)$", page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def main():
    bad = []
    pages = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, check=True, text=True,
                           stdout=subprocess.PIPE).stdout.split()
    for name in pages:
        page = ROOT / name
        text = re.sub(r"(?ms)^```.*?^```$", "", page.read_text(encoding="utf-8"))
        for target in LINK.findall(text):
            path, _, anchor = target.partition("#")
            if "://" in target:
                continue
            other = (page.parent / path).resolve() if path else page
            if not other.exists():
                bad.append(f"{name}: {target} leads nowhere")
            elif anchor and other.suffix == ".md" and anchor not in anchors(other):
                bad.append(f"{name}: {path} has no heading #{anchor}")
    print("\n".join(bad))
    sys.exit(1 if bad else 0)


main()
