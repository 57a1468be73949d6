#!/usr/bin/env python3
"""sentences.py SCRIPTS: scripts/check_sentences.py finds sentences that are too long, and no others."""
import sys

sys.path.insert(0, sys.argv[1])
import check_sentences  # noqa: E402

LONG = "Word " + "word " * 39 + "end."
SHORT = "This is a short one."


def expect(name, text, *found):
    bad = [line.split(",")[0] for line in check_sentences.check(name, text)[0]]
    wanted = [f"{name}:{'' if what[0].isdigit() else ' '}{what}" for what in found]
    if bad != wanted:
        sys.exit(f"{name}: found {bad}, not {wanted}, in:\n{text}")


def page(text, *found):
    expect("page.md", text, *found)


page(SHORT)
page("word " * 39 + "end.")
page(LONG, "1: 41 words")
page(f"# Title\n\n{SHORT} {LONG}\n", "3: 41 words")
page(f"- {SHORT}\n- {LONG}\n", "2: 41 words")
page(f"| a | {LONG} |\n", "1: 41 words")
page(f"```sh\n{LONG}\n```\n")
page(f"{SHORT}\n\n    {LONG}\n")
page("`" + "word " * 60 + "` is one word.")
page(", ".join(f"`NAME_{n}`" for n in range(60)) + " are a list.")
page("[" + "word " * 10 + "](a/very/long/target.md#" + "x" * 400 + ") counts by its text.")
page("# " + "word " * 30 + "\n" + "word " * 30 + "\n")  # a heading is not part of the text under it
page("A number such as 1.5 ends nothing, " + "word " * 40, "1: 47 words")
page("e.g. " + "word " * 20 + "i.e. " + "word " * 20, "1: 42 words")
page(("Word " + "word " * 23 + "end. ") * 9, "half of the sentences have 25 words or more")
page(("Word " + "word " * 17 + "end. ") * 9)
expect("page.1", f".Sh NAME\n{LONG}\n.Pp\n{SHORT}\n", "2: 41 words")
expect("page.1", f".Bd -literal\n{SHORT}\n.Ed\n")
expect("a.c", f"/* {LONG} */\nint x; /* {SHORT} */\n")
expect("a.c", "/* " + "word " * 50 + "end. */", "1: 51 words")
expect("a.c", "/* " + "word " * 30 + "end; " + "word " * 30 + "end. */")
expect("a.c", 'const char *text = "/* ' + "word " * 60 + '";')
