#!/usr/bin/env python3
"""A library that `kiln exec` interposes is one row of src/compilers/libraries.def: everything that must know it does.
KILN LIBEXEC SOURCE COMPILER. The real libraries here have no functions but the one that a row needs."""
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

KILN, LIBEXEC, SOURCE, COMPILER = sys.argv[1:5]
FIELDS = "id variable stem shim first last api prefix needs wheel name forwarded".split()
ROW = re.compile(r'KN_LIBRARY\(([a-z]+, [A-Z]+, "[^)]*)\)')


def read_rows():
    text = (Path(SOURCE) / "src/compilers/libraries.def").read_text()
    rows = [dict(zip(FIELDS, (field.strip(' \n"') for field in row.split(",")), strict=True)) for row in ROW.findall(text)]
    assert len(rows) >= 4, rows
    return rows


def make_real(root, row, major):
    path = root / f"{row['stem']}.so.{major}"
    function = row["needs"] or "unrelated"
    subprocess.run([COMPILER, "-shared", "-fPIC", "-x", "c", "-", "-o", path], check=True, text=True,
                   input=f"int {function}(void); int {function}(void) {{ return 0; }}")
    return path


def run(command, **env):
    return subprocess.run(command, env={**os.environ, "KILN_LIBEXEC": LIBEXEC, **env}, check=True,
                          stdout=subprocess.PIPE, text=True).stdout


def check_exec(real, row, major):
    """The search finds it on the usual way and by the user's variable; its shim is preloaded."""
    expected = f"export KILN_{row['variable']}_{major}='{real}'\n"
    for env in {"LD_LIBRARY_PATH": str(real.parent)}, {f"KILN_{row['variable']}_LIBRARY": str(real)}:
        printed = run([KILN, "exec", "--print", "--", "/bin/true"], **env)
        preload = re.search("LD_PRELOAD='([^']*)'", printed)
        assert expected in printed and preload, (expected, printed)
        assert any(name.endswith(f"/{row['shim']}.so.{major}") for name in preload[1].split(":")), printed


def check_doctor(real, row):
    """The auditor reports the library by its absolute path, and doctor names it."""
    load = f"import ctypes; ctypes.CDLL({str(real)!r})"
    found = json.loads(run([KILN, "doctor", "--json", "--", sys.executable, "-c", load]))
    names = {line["path"]: line for line in found["compilers"]}
    assert names[str(real)]["compiler"] == row["name"] and names[str(real)]["fix"], found


def check_row(root, row):
    assert f"usr/lib/*/kiln/{row['id']}\n" in (Path(SOURCE) / "packaging/debian/kiln.install").read_text()
    for major in range(int(row["first"]), int(row["last"]) + 1):
        assert Path(f"{LIBEXEC}/{row['id']}/{major}/{row['shim']}.so.{major}").is_file(), (row, major)
        real = make_real(root, row, major)
        check_exec(real, row, major)
        if major == int(row["last"]):
            check_doctor(real, row)


def main():
    for row in read_rows():
        with tempfile.TemporaryDirectory() as root:
            os.environ["KILN_CACHE_DIR"] = f"{root}/cache"
            check_row(Path(root).resolve(), row)


main()
