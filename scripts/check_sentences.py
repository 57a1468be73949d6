#!/usr/bin/env python3
"""check_sentences.py [FILE...]: no sentence of a page or a manual page has more than MOST words, none of a comment more than
MOST_IN_COMMENTS, and half of a page's sentences have fewer than MEDIAN. Code in backquotes is one word. In comments a semicolon ends a sentence, too, since
many are lists. Without a FILE all of the tree's are read."""
import re
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST, MOST_IN_COMMENTS, MEDIAN = 40, 50, 20
FEW = 8  # a page of fewer sentences has no median worth the name
SKIPPED = ("tests/golden/", "tests/fuzz/corpus/", "docs/man/kiln-environment.7")
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
# A full stop ends a sentence where something that can begin one comes after it.
END = re.compile(r"(?<=[.?!])[)\"'*_]*\s+(?=[\"'(*_`\[]*[A-Z0-9`])")
ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|No|approx)\.$")


def blank(text):
    """Its line breaks alone."""
    return "\n" * text.count("\n")


def page_blocks(text):
    """(line, text) of each paragraph, list item, heading and table cell of a Markdown page."""
    text = re.sub(r"(?ms)^ *```.*?^ *```", lambda m: blank(m.group(0)), text)
    text = re.sub(r"(?s)<!--.*?-->", lambda m: blank(m.group(0)), text)
    block, start, inside = [], 0, False
    for number, line in enumerate(text.split("\n") + [""], 1):
        item = re.match(r"\s*(?:[-*+]|\d+\.)\s+|#+ |> ", line)
        code = line.startswith("    ") and not block and not inside
        if (item or not line.strip() or line.lstrip().startswith("|")) and block:
            yield start, " ".join(block)
            block = []
        if item:
            inside = not line.startswith("#")
        elif line.strip() and not line.startswith(" "):
            inside = False
        if line.lstrip().startswith("|"):
            for cell in line.strip().strip("|").split("|"):
                yield number, cell
        elif line.strip() and not code:
            start = start if block else number
            block.append(line[item.end():] if item else line)
            if line.startswith("#"):
                yield start, " ".join(block)
                block = []


MACROS = ("Nm", "Cm", "Ev", "Pa", "Fl", "Ar", "Ql", "Xr", "Dq", "Sq", "Li", "Fn", "Em", "Pq", "Ic", "Vt", "Dv")


def manual_blocks(text):
    """(line, text) of each sentence of a manual page: in mdoc a sentence ends with its line. Examples are left out."""
    text = re.sub(r"(?ms)^\.Bd .*?^\.Ed", lambda m: blank(m.group(0)), text)
    block, start = [], 0
    for number, line in enumerate(text.split("\n") + ["."], 1):
        word = re.match(r"\.(\w+)\s*(.*)", line)
        if (line.startswith(".") or not line) and not (word and word[1] in MACROS):
            if block:
                yield start, " ".join(block)
            block = []
        elif not line.startswith('.\\"'):
            start = start if block else number
            text_macro = word and word[1] in ("Pq", "Dq", "Sq", "Em")
            block.append(line if not word else word[2] if text_macro else "`code`" + (" ." if line.endswith(" .") else ","))
            if line.endswith((".", "?", "!")):
                yield start, " ".join(block)
                block = []


def comment_blocks(text):
    """The paragraphs of each comment; an example in one is indented, a table has bars."""
    for token in COMMENT.finditer(text):
        if token.group(0)[0] != "/":
            continue
        start = text.count("\n", 0, token.start()) + 1
        lines = re.sub(r"^/\*+|\*/$|^//", "", token.group(0)).split("\n")
        block, first = [], start
        for number, line in enumerate(lines + [""], start):
            line = re.sub(r"^\s*\*(?= |$)", "", line)
            if not line.strip() or re.match(r"\s{3,}\S|\s*[-|+]", line) or re.match(r" (?:Threads|Blocks|Owns|Fails):", line):
                if block:
                    yield first, " ".join(block)
                block, first = [], number
            if line.strip() and not re.match(r"\s{3,}\S|\s*\|", line):
                first = first if block else number
                block.append(line.strip())
        if block:
            yield first, " ".join(block)


def sentences(text):
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`+[^`]*`+", "`code`", text)
    text = re.sub(r"`code`(?:,?\s+(?:and\s+|or\s+)?`code`)+", "`code`", text)  # a list of names is one
    parts = END.split(text)
    while parts:
        part = parts.pop(0)
        while parts and ABBREVIATION.search(part):
            part += " " + parts.pop(0)
        words = re.findall(r"[\w`'’.,%/=+*-]*[\w`][\w`'’.,%/=+*-]*", part)
        if words:
            yield part, len(words)


SOURCES = (".c", ".h", ".hpp", ".def", ".cpp")


def blocks_of(name, text):
    if name.endswith(".md"):
        return page_blocks(text)
    if re.search(r"\.[1-9]$", name):
        return manual_blocks(text)
    if name.endswith(SOURCES):
        return comment_blocks(text)
    return ()


def check(name, text):
    """What is wrong, a line each; and the lengths of the sentences."""
    bad, lengths = [], []
    source = name.endswith(SOURCES)
    most = MOST_IN_COMMENTS if source else MOST
    for line, block in blocks_of(name, text):
        for part, length in sentences(re.sub(r";\s", ". A", block) if source else block):
            lengths.append(length)
            if length > most:
                bad.append(f"{name}:{line}: {length} words, at most {most}: {' '.join(part.split())[:70]}...")
    whole = [length for length in lengths if length > 3]  # cells and headings of a word or two say nothing
    if name.endswith(".md") and len(whole) >= FEW and statistics.median(whole) >= MEDIAN:
        bad.append(f"{name}: half of the sentences have {statistics.median(whole):g} words or more, not fewer than {MEDIAN}")
    return bad, lengths


def main():
    names = sys.argv[1:] or subprocess.run(["git", "ls-files"], check=True, capture_output=True, text=True,
                                           cwd=ROOT).stdout.split("\n")
    bad = []
    for name in names:
        if name and not name.startswith(SKIPPED) and (ROOT / name).is_file():
            try:
                bad += check(name, (ROOT / name).read_text(encoding="utf-8"))[0]
            except UnicodeDecodeError:
                continue
    print("\n".join(bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
