#!/usr/bin/env python3
"""guide_site.py SCRIPTS: scripts/guide_html.py makes a page of each page of docs, whose links all lead somewhere, and a search
that finds. The search is tried in Chromium, if that is installed."""
import json
import re
import shutil
import subprocess
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path

SCRIPTS = Path(sys.argv[1])
DOCS = SCRIPTS.parent / "docs"
VOID = {"meta", "link", "input", "img"}


class Page(HTMLParser):
    """Its links, its anchors, and whether each element ends."""

    def __init__(self, path):
        super().__init__()
        self.path, self.links, self.anchors, self.open = path, [], set(), []
        self.feed(path.read_text(encoding="utf-8"))
        assert not self.open, f"{path}: {self.open} does not end"

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.links += [attributes[name] for name in ("href", "src") if name in attributes]
        self.anchors.add(attributes.get("id"))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, f"{self.path}: </{tag}>"


def check_links(pages):
    for page in pages.values():
        for link in page.links:
            path, _, anchor = link.partition("#")
            if "://" in link:
                continue
            goal = (page.path.parent / path).resolve() if path else page.path
            assert goal.exists(), f"{page.path}: {link} leads nowhere"
            assert not anchor or anchor in pages[goal].anchors, f"{page.path}: {link}: there is no such heading"


def check_search(folder, pages):
    text = (folder / "index.js").read_text(encoding="utf-8")
    rows = json.loads(re.fullmatch(r"const kilnGuide = (.*);\n", text, re.S)[1])
    assert {row[0] for row in rows} == {path.relative_to(folder).as_posix() for path in pages}, "a page is not searched"
    for page, _, anchor, heading, _ in rows:
        assert not anchor or anchor in pages[folder / page].anchors, (page, heading)
    browser = next((name for name in ("chromium", "chromium-browser", "google-chrome") if shutil.which(name)), None)
    if browser is None:
        print("chromium is not installed: the search was not tried")
        return
    for asked, found in (("KILN_CACHE_MAX_SIZE", "reference/environment.html"), ("redis leases", "operate/remotes.html#kinds"),
                         ("nosuchwordanywhere", "Nothing found.")):
        done = subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND",
             f"--user-data-dir={folder}/home", "--virtual-time-budget=2000", "--dump-dom",
             f"{(folder / 'use/exec.html').as_uri()}?q={asked.replace(' ', '+')}"],
            capture_output=True, text=True, timeout=120, check=True)
        shown = re.search(r'<ol id="found".*?</ol>', done.stdout, re.S)[0]
        assert found in shown and "hidden" not in shown.split(">")[0], f"{asked}: {shown}"


def main():
    with tempfile.TemporaryDirectory(prefix="kiln-guide-site-") as place:
        folder = Path(place).resolve()
        subprocess.run([sys.executable, SCRIPTS / "guide_html.py", folder], check=True)
        pages = {path: Page(path) for path in sorted(folder.rglob("*.html"))}
        assert len(pages) == len(list(DOCS.rglob("*.md"))), "a page is missing"
        check_links(pages)
        check_search(folder, pages)
        assert "<table>" in (folder / "benchmarks.html").read_text(encoding="utf-8")


main()
