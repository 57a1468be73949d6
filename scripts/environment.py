#!/usr/bin/env python3
"""environment.py [--update]: docs/reference/environment.md names every environment variable that the code
reads, once each, and none besides; docs/man/kiln-environment.7 says the same. --update writes the man page."""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/reference/environment.md"
MANUAL = ROOT / "docs/man/kiln-environment.7"
# Names that look like variables and are none: constants of the code in messages, errors of NVRTC.
OTHERS = re.compile(r"^(KILN_E_\w+|KILN_CACHE_NO_DISK|KILN_LANG_\w+|NVRTC_ERROR_\w+)$")
# What kiln or its tests set: not settings of a user's.
INTERNAL = {"EXEC_REPORT", "AUDIT_REPORT", "AUDIT_SERVE", "TRITON", "TRITON_PTXAS", "TRITON_PTXAS_BLACKWELL", "NVRTC_AGAIN",
            "FAKE", "FAKE_BOUND", "FAKE_BUILD_ID", "FAKE_CODEGEN", "FAKE_DEVICE", "FAKE_DEVICES", "FAKE_DRIVER",
            "FAKE_FAULTS", "FAKE_PROBE"}
CALL = re.compile(r'\b(?:getenv|kn_env_\w+|read_flag|set_variable|absolute_variable|setenv|'
                  r'exec_environment_append|add_triton_ptxas|get_list|identity->env|ROW)'
                  r'\s*\((?:(?:identity->sink|environment),\s*)?\s*"(\w+)"')
TABLE = re.compile(r'^KN_VARIABLE\(\w+, "(\w+)"', re.M)
LIBRARY = re.compile(r'^KN_LIBRARY\(\w+, (\w+), "', re.M)
ARRAY = re.compile(r"variables\[\]\s*=\s*\{(.*?)\};", re.S)


def read_by_code():
    found = {}
    for folder in ("src", "programs"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in (".c", ".h", ".def"):
                continue
            text = path.read_text(encoding="utf-8")
            names = CALL.findall(text) + TABLE.findall(text) + re.findall(r'"(KILN_[A-Z_]+)"', text)
            names += [f"KILN_{name}_LIBRARY" for name in LIBRARY.findall(text)]
            for array in ARRAY.findall(text):
                names += re.findall(r'"(\w+)"', array)
            if path.name == "driver_caches.c":
                names += re.findall(r'"([A-Z_]+_(?:DIR|CACHE|PATH|DISABLE|PERSISTENT)|__GL\w+)"', text)
            for name in names:
                if not OTHERS.match(name):
                    found.setdefault(name, path.relative_to(ROOT))
    return found


def rows():
    """(section, cells) of each table row; the section's paragraphs come as a string."""
    section = ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = line[3:]
        elif line.startswith("| ") and not line.startswith(("| variable", "| backend", "| ---")):
            yield section, [cell.strip() for cell in line.strip("|").split(" | ")]


def mdoc(text):
    text = text.replace("\\", "\\e").replace("`", "").replace("…", "...")
    text = re.sub(r"(?<= )([:,])(?= )", r"\\&\1", text)
    return re.sub(r"(?m)^([.'])", r"\\&\1", text)


def manual():
    out = [".\\\" Made by scripts/environment.py of docs/reference/environment.md.",
           ".Dd November 21, 2026", ".Dt KILN-ENVIRONMENT 7", ".Os", ".Sh NAME",
           ".Nm kiln-environment", ".Nd environment variables that kiln reads", ".Sh DESCRIPTION",
           "An option of a command, or a field that a program sets, wins over its variable.",
           "A malformed value is an error that names the variable; an empty one counts as unset.",
           ".Pp", "Switches take 1/0, true/false, yes/no, on/off.",
           "Sizes take K, M, G, T; ages take s, m, h, d, w."]
    section = None
    for name, cells in rows():
        if name != section:
            out += ([".El"] if section else []) + [f".Ss {name}", ".Bl -tag -width Ds"]
            section = name
        if name == "In keys":
            out += [f".It {mdoc(cells[0])}", mdoc(cells[1])]
            continue
        names = " , ".join(re.findall(r"`(\w+)`", cells[0]))
        value = mdoc(cells[1]) if len(cells) > 2 else ""
        out += [f".It Ev {names}" + (f" Pq {value}" if value else "")]
        out += re.sub(r"([.:]) (?=[A-Z])", r"\1\n", mdoc(cells[-1])).splitlines()
    out += [".El", ".Sh SEE ALSO", ".Xr kiln 1", ""]
    return "\n".join(out)


def main():
    code = read_by_code()
    told = set(re.findall(r"`(_*[A-Z][A-Za-z0-9_]+)`", PAGE.read_text(encoding="utf-8")))
    told = {name for name in told if "_" in name or name in code}
    bad = [f"{code[name]}: {name} is not in docs/reference/environment.md"
           for name in sorted(code.keys() - told)]
    known = code.keys() | {"XDG_CACHE_HOME", "TMPDIR", "CUDA_PATH"}
    bad += [f"docs/reference/environment.md: nothing reads {name}" for name in sorted(told - known)]
    defined = [name for section, cells in rows() if section != "In keys" for name in re.findall(r"`(\w+)`", cells[0])]
    bad += [f"docs/reference/environment.md: {name} has {defined.count(name)} rows: a variable has one meaning"
            for name in sorted({name for name in defined if defined.count(name) > 1})]
    table = set(re.findall(r"^X\((\w+),", (ROOT / "src/sys/settings.def").read_text(encoding="utf-8"), re.M))
    users = {name[5:] for name in defined if name.startswith("KILN_")} - INTERNAL
    bad += [f"src/sys/settings.def and docs/reference/environment.md differ in KILN_{name}" for name in sorted(table ^ users)]
    if "--update" in sys.argv:
        MANUAL.write_text(manual(), encoding="utf-8")
    elif not MANUAL.exists() or MANUAL.read_text(encoding="utf-8") != manual():
        bad.append("docs/man/kiln-environment.7 is older than the page: scripts/environment.py --update")
    print("\n".join(bad))
    sys.exit(1 if bad else 0)


main()
