#!/usr/bin/env python3
"""stages.py SOURCE: the tree names no stage that src/base/stages.def lacks, and check_stages.py, which says so, finds one
however it is named."""
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(sys.argv[1])
CHECK = SOURCE / "scripts/check_stages.py"
#: A file that names the stage "rogue.code" in one way each.
WAYS = {
    "src/a.c": 'kiln_status s = kiln_recipe_create("rogue.code", 1, &recipe, diag);\n',
    "src/b.c": '#define STAGE "rogue.code" /* a macro */\nkiln_status s = kiln_recipe_create(\n    STAGE, 1, &recipe, diag);\n',
    "src/c.c": 'kiln_status make(int a, const char *stage);\nint b = make(f(1, 2), many ? "rogue.code" : kn_stage_headers);\n',
    "src/d.c": 'static const kiln_stage rows[] = {\n    {"rogue.code", 1, KILN_LANG_NONE, true, true, false},\n};\n',
    "src/e.c": 'static const kiln_stage row = {.revision = 1, .name = "rogue.code"};\n',
    "src/f.c": 'static const kind one = {.stage = "rogue.code"};\n',
    "programs/g.c": 'kiln_status s = kiln_recipe_create("rogue.code", 1, &recipe, diag);\n',
    "python/kiln/h.py": 'from kiln.recipe import Recipe\nrecipe = Recipe("rogue.code", 1)\n',
    "python/kiln/i.py": 'from kiln._entries import Entries\n_ENTRIES = Entries("rogue.code", "x")\n',
}


def run(tree):
    done = subprocess.run([sys.executable, CHECK, tree], capture_output=True, text=True, timeout=120)
    assert done.stderr == "", done.stderr
    return done


def main():
    done = run(SOURCE)
    assert done.returncode == 0, done.stdout
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "src/base").mkdir(parents=True)
        shutil.copy(SOURCE / "src/base/stages.def", root / "src/base")
        for path, text in WAYS.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        # In src a name that is registered is not written out either.
        (root / "src/z.c").write_text('kiln_status s = kiln_recipe_create("headers", 1, &recipe, diag);\n')
        (root / "src/y.c").write_text("kiln_status s = kiln_recipe_create(kn_stage_headers, 1, &recipe, diag);\n")
        (root / "python/kiln/x.py").write_text('from kiln.recipe import Recipe\nrecipe = Recipe("cuda.jit", 77)\n')
        done = run(root)
        assert done.returncode == 1, done.stdout
        for path in WAYS:
            assert f"{path}:" in done.stdout and '"rogue.code"' in done.stdout, (path, done.stdout)
        assert "src/z.c:1: " in done.stdout and "use kn_stage_headers" in done.stdout, done.stdout
        # A revision stands in the row alone.
        assert "src/y.c:1: a revision" in done.stdout and "x.py:2: its revision" in done.stdout, done.stdout


main()
