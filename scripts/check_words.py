#!/usr/bin/env python3
"""Finds words that this project does not use, by the list in words.txt: in comments, messages, pages
and manual pages."""
import fnmatch
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOKEN = re.compile(
    r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"(?:\s*"(?:\\.|[^"\\\n])*")*|'(?:\\.|[^'\\\n])*'""",
    re.DOTALL)
C_FILES = (".c", ".h", ".hpp", ".def", ".cpp")
HASH_FILES = (".py", ".sh", ".cmake", "CMakeLists.txt", "dev", ".ci/run")
MANUALS = (".1", ".3", ".5", ".7")
MESSAGES = ("src/", "programs/", "include/")
SKIPPED = ("tests/golden/", "tests/fuzz/corpus/", "docs/charts/", "scripts/check_words.py")


def rules():
    found, allowed = [], []
    for line in (HERE / "words.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("allow "):
            name, pattern = line[len("allow "):].split(" #")[0].strip().split(": ", 1)
            allowed.append((name, pattern))
        elif line and not line.startswith("#"):
            pattern, instead = line.split(" -> ")
            expression = re.compile(rf"(?<![\w-])(?:{pattern})(?!\w)", re.IGNORECASE)
            found.append((pattern, expression, instead))
    return found, allowed


def blank(text):
    """As long as `text`, and with its line breaks."""
    return re.sub(r"[^\n]", " ", text)


def c_prose(text, messages):
    """Comments, and strings that look like a message; everything else is blank."""
    out, at = [], 0
    for token in TOKEN.finditer(text):
        out.append(blank(text[at:token.start()]))
        word, at = token.group(0), token.end()
        if word[0] == "/":
            out.append(re.sub(r"(?m)^(\s*)\*(?!/)|^/\*|//", lambda m: blank(m.group(0)), word))
        elif messages and word[0] == '"' and " " in word:
            out.append(re.sub(r'"\s*"|\\n', lambda m: blank(m.group(0)), word))
        else:
            out.append(blank(word))
    return "".join(out) + blank(text[at:])


def prose(name, text):
    if name.endswith(C_FILES):
        text = c_prose(text, name.startswith(MESSAGES))
    elif name.endswith(HASH_FILES):
        text = re.sub(r'(?m)^(?!\s*#).*$', lambda m: blank(m.group(0)), text)
    elif name.endswith(".md"):
        text = re.sub(r"(?ms)^```.*?^```", lambda m: blank(m.group(0)), text)
    elif not name.endswith(MANUALS):
        return None
    return re.sub(r"`[^`\n]*`", lambda m: blank(m.group(0)), text)


def joined(text):
    """The words with one space between two, and for each of its characters the line that it is in."""
    out, lines, line = [], [], 1
    for part in re.finditer(r"\s+|\S+", text):
        word = part.group(0)
        if word.isspace():
            line += word.count("\n")
            word = " "
        out.append(word)
        lines.extend([line] * len(word))
    return "".join(out), lines


def main():
    found, allowed = rules()
    bad = 0
    files = subprocess.run(["git", "ls-files"], check=True, capture_output=True, text=True,
                           cwd=HERE.parent).stdout.split("\n")
    for name in files:
        if not name or name.startswith(SKIPPED):
            continue
        if not name.endswith(C_FILES + HASH_FILES + MANUALS + (".md",)):
            continue
        text, lines = joined(prose(name, (HERE.parent / name).read_text(encoding="utf-8")))
        exempt = {pattern for glob, pattern in allowed if fnmatch.fnmatch(name, glob)}
        for pattern, expression, instead in found:
            if pattern in exempt:
                continue
            for match in expression.finditer(text):
                print(f'{name}:{lines[match.start()]}: "{match.group(0)}" -> {instead}')
                bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
