#!/usr/bin/env python3
"""Every link of a page to another file of this tree leads somewhere, its heading included, and so does every page of docs that
code, a message or a comment names."""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(page):
    headings = re.findall(r"(?m)^#+ (.*)$", page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def named_in_code():
    """Pages that something else than a page names, below docs; a comment with little room may leave out the directory."""
    names = {path.name for path in ROOT.rglob("*.md") if "build" not in path.relative_to(ROOT).parts}
    bad = []
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE).stdout.split("\n")
    for name in files:
        path = ROOT / name
        if not name or name.endswith((".md", ".svg")) or name.startswith("tests/golden/") or not path.is_file():
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        for found in set(re.findall(r"\bdocs/[\w./-]*\.md\b", text)):
            if not (ROOT / found).exists():
                bad.append(f"{name}: {found} is not there")
        if name.endswith((".c", ".h", ".hpp")):
            for found in set(re.findall(r"(?<![\w/.-])([a-z][\w-]*\.md)\b", text)):
                if found not in names:
                    bad.append(f"{name}: there is no page {found}")
    return bad


def main():
    bad = named_in_code()
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
