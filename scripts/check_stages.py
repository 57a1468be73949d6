#!/usr/bin/env python3
"""check_stages.py [TREE]: every stage that the tree names is a row of src/base/stages.def. In src the name comes from there
(kn_stage_opencl_binary), so that no string stands where a stage is wanted; programs and Python write it out. The fake
backend, from which new_backend.sh makes others, writes it out, too. Prints each stage that is not so, and exits 1."""
import ast
import re
import sys
from pathlib import Path

ROOT = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
ROW = re.compile(r'^KN_STAGE\(\s*(\w+),\s*"([^"]+)",\s*(\d+),\s*\w+,', re.M)
COMMENT = re.compile(r"/\*.*?\*/", re.S)
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
#: Functions with a parameter that names a stage, and where in their arguments it is.
TAKES = re.compile(r"\b(\w+)\(((?:[^()]|\([^()]*\))*?\bconst char \*(?:stage|stage_name)\b(?:[^()]|\([^()]*\))*)\)")
MACRO = re.compile(r"^#define (\w+) (.*)$", re.M)
#: A row of a table of stages, and members that name one.
TABLE = re.compile(r"\bkiln_stage \w+(?:\[\w*\])? = \{(.*?)\};", re.S)
STAGE = re.compile(r"\b(?:kn_stage_|KN_STAGE_AT\()(\w+)\b")
#: A revision that is not the row's.
REVISION = re.compile(r"\bkn_stage_\w+,\s*\d")
MEMBER = re.compile(r'\.stage = ("[^"]*"|\w+)')
WRITTEN_OUT = "src/apis/fake/backend/"


def arguments(text, start):
    """The arguments of a call whose first one begins at `start`."""
    depth, found, begin, quoted = 0, [], start, False
    for at in range(start, len(text)):
        c = text[at]
        if c == '"' and text[at - 1] != "\\":
            quoted = not quoted
        if quoted:
            continue
        if depth == 0 and c in ",)":
            found.append(text[begin:at].strip())
            begin = at + 1
        if c in "([{":
            depth += 1
        elif c in ")]}":
            if depth == 0:
                break
            depth -= 1
    return found


class Tree:
    def __init__(self):
        self.rows = {name: (identifier, int(revision)) for identifier, name, revision in
                     ROW.findall((ROOT / "src/base/stages.def").read_text())}
        self.texts = {}
        for path in sorted(p for folder in ("src", "programs") for p in (ROOT / folder).rglob("*.[ch]")):
            self.texts[path.relative_to(ROOT).as_posix()] = COMMENT.sub(
                lambda m: "\n" * m.group().count("\n"), path.read_text(encoding="utf-8"))
        self.takers = {"kiln_recipe_create": 0}
        for text in self.texts.values():
            for name, parameters in TAKES.findall(text):
                places = [i for i, one in enumerate(parameters.split(",")) if re.search(r"\*stage(_name)?$", one.strip())]
                if places:
                    self.takers[name] = places[0]
        self.bad, self.seen = [], set()

    def fail(self, path, text, at, why):
        line = text.count("\n", 0, at) + 1
        self.bad.append(f"{path}:{line}: {why}")

    def judge(self, path, text, at, expression, macros):
        """`expression` stands where a stage is wanted."""
        for word in re.findall(r"\b[A-Z_][A-Z0-9_]+\b", STRING.sub("", expression)):
            expression += " " + macros.get(word, "")
        for name in STRING.findall(expression):
            self.seen.add(name)
            if name not in self.rows:
                self.fail(path, text, at, f'the stage "{name}" is not in src/base/stages.def: add a row')
            elif path.startswith("src/") and not path.startswith(WRITTEN_OUT):
                self.fail(path, text, at, f'the stage "{name}" is written out: use kn_stage_{self.rows[name][0]}')
        self.seen.update(STAGE.findall(expression))

    def check_c(self):
        for path, text in self.texts.items():
            macros = dict(MACRO.findall(text))
            for name, place in self.takers.items():
                for match in re.finditer(rf"\b{name}\(", text):
                    given = arguments(text, match.end())
                    if len(given) > place and "const char *" not in given[place]:
                        self.judge(path, text, match.start(), given[place], macros)
            for match in TABLE.finditer(text):
                inside = match.group(1)
                for row in re.findall(r'\.name = ("[^"]*"|\w+)', inside) or re.findall(r'\{\s*("[^"]*"|\w+),', "{" + inside):
                    self.judge(path, text, match.start(), row, macros)
            for match in MEMBER.finditer(text):
                self.judge(path, text, match.start(), match.group(1), macros)
            self.seen.update(STAGE.findall(text) if not path.startswith("src/base/stages") else [])
            for match in REVISION.finditer(text):
                self.fail(path, text, match.start(), "a revision is written out: use KN_STAGE_AT")

    def check_python(self):
        """Stages of the package: the first argument of Recipe and of Entries."""
        for path in sorted((ROOT / "python").rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            if "by_hand" in path.parts or "tests" in path.parts:
                continue
            for node in ast.walk(tree):
                called = getattr(node.func, "id", getattr(node.func, "attr", "")) if isinstance(node, ast.Call) else ""
                first = node.args[0] if called in ("Recipe", "Entries") and node.args else None
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    self.seen.add(first.value)
                    if first.value not in self.rows:
                        self.bad.append(f'{path.relative_to(ROOT)}:{node.lineno}: the stage "{first.value}" is not in '
                                        "src/base/stages.def: add a row")
                    elif called == "Recipe" and getattr(node.args[1], "value", None) != self.rows[first.value][1]:
                        self.bad.append(f"{path.relative_to(ROOT)}:{node.lineno}: its revision is not the row's")

    def check_rows(self):
        for name, (identifier, _) in self.rows.items():
            if not {name, identifier} & self.seen:
                self.bad.append(f'src/base/stages.def: nothing makes entries of "{name}"')
            if re.sub(r"[.-]", "_", name) != identifier:
                self.bad.append(f'src/base/stages.def: "{name}" is not the stage {identifier}')


def main():
    tree = Tree()
    tree.check_c()
    tree.check_python()
    tree.check_rows()
    print("\n".join(tree.bad), end="\n" if tree.bad else "")
    return 1 if tree.bad else 0


sys.exit(main())
