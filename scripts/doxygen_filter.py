#!/usr/bin/env python3
"""doxygen_filter.py HEADER: a public header as Doxygen wants it. The headers' own comments are plain
block comments: one opens the file, one stands before the declarations that it serves up to the next
blank line, and one behind a field is that field's."""
import re
import sys

LABELS = re.compile(r"\b(Threads|Blocks|Owns|Fails):")
NAME = re.compile(r"^(?:KILN_API|typedef)\b[^;{]*?\b(kiln_\w+)\s*[({]", re.S)
SECTION = re.compile(r"/\* -{3,}")


def escaped(text):
    """Doxygen's and Markdown's own characters, but not inside backticks."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([\\@<>#%\"*&])", r"\\\1", part)
                   .replace("::", r"\::") for part in parts)


def marked(lines, before):
    """The lines of a block comment, marked up. `before` is what opens it."""
    out, code = [], False
    for i, line in enumerate(lines):
        text = re.sub(r"^\s*(/\*|\*(?!/)) ?", "", line)
        text = re.sub(r"\s*\*/\s*$", "", text)
        indented = i > 0 and text.startswith("    ")
        if indented and not code:
            # The line before is blank or ends a sentence: code begins there without a line more.
            out[-1] += " @code{.c}"
        elif code and not indented and text.strip():
            out[-1] += " @endcode"
        code = indented or code and not text.strip()
        if not code:
            bullet = re.match(r"\s*- ", text)
            text = escaped(text.strip())
            text = LABELS.sub(lambda m: f"<br><b>{m[1]}</b>:", text)
            text = ("- " if bullet else "") + (text[2:] if bullet else text)
        out.append(text)
    if code:
        out[-1] += " @endcode"
    out[0] = before + " " + out[0]
    out[-1] += " */"
    return out


def main():
    lines = open(sys.argv[1], encoding="utf-8").read().splitlines()
    out, i, first, served = [], 0, True, None
    name = re.sub(r".*/include/", "", sys.argv[1])
    while i < len(lines):
        line = lines[i]
        start = line.find("/*")
        if not line.strip():
            served = None
        declared = NAME.match("\n".join(lines[i:i + 4])) if start else None
        if declared and served == "":
            served = declared[1]
        elif declared and served and line.startswith("KILN_API"):
            line = f"/** @copydoc {served} */ {line}"
        if start < 0 or line.rstrip().endswith("\\"):
            out.append(line)
            i += 1
            continue
        end = i
        while "*/" not in lines[end][start + 2 if end == i else 0:]:
            end += 1
        if SECTION.search(line):
            out += [""] * (end - i + 1)
        elif first:
            out += marked(lines[i:end + 1], f"/** @file {name}\n *")
        elif line[:start].strip():  # behind a field
            inside = [line[start:]] + lines[i + 1:end + 1]
            done = marked(inside, "/**<")
            out += [line[:start] + done[0]] + done[1:]
        else:
            out += marked(lines[i:end + 1], "/**")
            served = "" if not line.startswith(" ") else served
        first = False
        i = end + 1
    sys.stdout.write("\n".join(out) + "\n")


main()
