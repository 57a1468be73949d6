#!/usr/bin/env python3
"""guide_html.py DIRECTORY: the pages of docs as HTML with a search, in DIRECTORY. Static files: scripts/guide has the page,
its style and the search; index.js is what is searched. Only the Markdown that the pages use is understood."""
import html
import json
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS, PARTS = ROOT / "docs", ROOT / "scripts/guide"
MENU = (("Start", ("README", "start/install", "faq")),
        ("Use", ("use/exec", "use/python", "use/cache", "use/drop-ins", "use/opencl", "use/nvrtc", "use/hiprtc", "use/vulkan",
                 "use/opengl", "use/runtime", "use/cpp", "use/vendoring", "advanced", "recipes")),
        ("Operate", ("operate/operations", "operate/remotes", "operate/packs", "operate/record", "operate/report",
                     "operate/security", "operate/troubleshooting")),
        ("Reference", ("reference/environment", "reference/backends/README", "reference/interposed", "reference/api",
                       "reference/formats", "reference/platforms", "reference/windows", "benchmarks", "decisions/README")))


def target_of(page):
    """A README is the index of its directory."""
    name = page.relative_to(DOCS).with_suffix(".html")
    return name.with_name("index.html") if name.stem == "README" else name


def anchor(heading):
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


class Converter:
    def __init__(self, page):
        self.page = page
        self.sections = []  # [anchor, heading, text] for the search
        self.bad = []

    def link(self, match):
        text, goal = match[1], match[2]
        if "://" in goal or goal.startswith("#"):
            return f'<a href="{html.escape(goal)}">{text}</a>'
        path, _, place = goal.partition("#")
        other = (self.page.parent / path).resolve()
        if not other.exists():
            self.bad.append(f"{self.page.relative_to(ROOT)}: {goal} leads nowhere")
        if other.is_relative_to(DOCS) and other.suffix == ".md":
            ups = "../" * (len(target_of(self.page).parts) - 1)
            goal = ups + target_of(other).as_posix() + (f"#{place}" if place else "")
        elif not other.is_relative_to(DOCS):
            return text  # what is not part of the guide
        return f'<a href="{html.escape(goal)}">{text}</a>'

    def inline(self, text):
        codes = []

        def keep(match):
            codes.append(f"<code>{html.escape(match[0].strip('`'))}</code>")
            return f"\0{len(codes) - 1}\0"

        line = html.escape(re.sub(r"`+[^`]*`+", keep, text), quote=False)
        line = re.sub(r"!\[([^\]]*)\]\(([^)\s]+)\)", r'<img src="\2" alt="\1">', line)
        line = re.sub(r"\[([^\]]*)\]\(([^)\s]+)\)", self.link, line)
        line = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", line)
        line = re.sub(r"(?<![\w*])\*([^\s*][^*]*)\*(?![\w*])", r"<em>\1</em>", line)
        return re.sub(r"\0(\d+)\0", lambda match: codes[int(match[1])], line)

    def said(self, text):
        if self.sections:
            self.sections[-1][2] += " " + re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("`", "").replace("**", "")

    def table(self, lines):
        rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))] for line in lines]
        sides = [' class="right"' if cell.endswith(":") else "" for cell in rows[1]]
        out = ['<div class="table"><table>']
        for number, row in enumerate(rows):
            if number == 1:
                continue
            self.said(" ".join(row))
            kind = "td" if number else "th"
            cells = "".join(f"<{kind}{side}>{self.inline(cell)}</{kind}>" for cell, side in zip(row, sides))
            out.append(f"<tr>{cells}</tr>")
        return "\n".join(out + ["</table></div>"])

    def items(self, lines):
        """A list; what is indented belongs to its item."""
        ordered = re.match(r"\d+\.", lines[0])
        found = []
        for line in lines:
            item = re.match(r"(?:[-*]|\d+\.)\s+", line)
            if item:
                found.append([line[item.end():]])
            else:
                found[-1].append(re.sub(r"^ {1,3}", "", line))
        bodies = [self.blocks(item) for item in found]
        bodies = [body[3:-4] if body.startswith("<p>") and body.count("<p>") == 1 and body.endswith("</p>") else body
                  for body in bodies]
        body = "\n".join(f"<li>{body}</li>" for body in bodies)
        return f"<ol>\n{body}\n</ol>" if ordered else f"<ul>\n{body}\n</ul>"

    def blocks(self, lines):
        out, at = [], 0
        while at < len(lines):
            line = lines[at]
            begin = at
            at += 1
            if line.startswith("```"):
                while not lines[at].startswith("```"):
                    at += 1
                code = "\n".join(lines[begin + 1:at])
                at += 1
                self.said(code)
                out.append(f"<pre><code>{html.escape(code)}</code></pre>")
            elif re.match(r"#+ ", line):
                level, text = len(line) - len(line.lstrip("#")), line.lstrip("#").strip()
                self.sections.append([anchor(text) if level > 1 else "", text.replace("`", ""), ""])
                out.append(f'<h{level} id="{anchor(text)}">{self.inline(text)}</h{level}>')
            elif line.startswith("|"):
                while at < len(lines) and lines[at].startswith("|"):
                    at += 1
                out.append(self.table(lines[begin:at]))
            elif re.match(r"[-*] |\d+\. ", line):
                while at < len(lines) and (re.match(r"[-*] |\d+\. |\s+\S", lines[at]) or
                                           (not lines[at] and at + 1 < len(lines) and lines[at + 1].startswith("  "))):
                    at += 1
                out.append(self.items(lines[begin:at]))
            elif line.strip():
                while at < len(lines) and lines[at].strip() and not re.match(r"```|#+ |\||[-*] |\d+\. ", lines[at]):
                    at += 1
                text = " ".join(part.strip() for part in lines[begin:at])
                self.said(text)
                out.append(f"<p>{self.inline(text)}</p>")
        return "\n".join(out)


def navigation(page, titles):
    here = target_of(page)
    ups = "../" * (len(here.parts) - 1)
    out = []
    for group, names in MENU:
        out.append(f"<h2>{group}</h2>")
        for name in names:
            there = target_of(DOCS / f"{name}.md")
            current = ' aria-current="page"' if there == here else ""
            out.append(f'<a href="{ups}{there.as_posix()}"{current}>{html.escape(titles[name])}</a>')
    return "\n".join(out)


def main():
    out = Path(sys.argv[1])
    pages = sorted(path for path in DOCS.rglob("*.md"))
    titles = {path.relative_to(DOCS).with_suffix("").as_posix():
              path.read_text(encoding="utf-8").split("\n", 1)[0].lstrip("# ").replace("`", "") for path in pages}
    template = (PARTS / "page.html").read_text(encoding="utf-8")
    rows, bad = [], []
    for page in pages:
        converter = Converter(page)
        body = converter.blocks(page.read_text(encoding="utf-8").split("\n"))
        bad += converter.bad
        target = target_of(page)
        name = page.relative_to(DOCS).with_suffix("").as_posix()
        rows += [[target.as_posix(), titles[name], place, heading, " ".join(text.split())]
                 for place, heading, text in converter.sections]
        for mark, text in (("TITLE", html.escape(titles[name])), ("ROOT", "../" * (len(target.parts) - 1)),
                           ("NAVIGATION", navigation(page, titles)), ("BODY", body)):
            whole = (template if mark == "TITLE" else whole).replace(f"@{mark}@", text)
        (out / target).parent.mkdir(parents=True, exist_ok=True)
        (out / target).write_text(whole, encoding="utf-8")
    (out / "index.js").write_text("const kilnGuide = " + json.dumps(rows, ensure_ascii=False) + ";\n", encoding="utf-8")
    for name in ("guide.css", "search.js"):
        shutil.copy(PARTS / name, out / name)
    shutil.copytree(DOCS / "charts", out / "charts", dirs_exist_ok=True)
    print("\n".join(bad))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
