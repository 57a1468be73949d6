#!/usr/bin/env python3
"""check_symbols.py BUILD [--update]: the archive's globals are kiln_ or kn_ only; abi/libkiln.symbols
lists what the public headers declare, and libkiln.so exports exactly that; and it is linked with nothing
that a vendor makes. A line of the list is "name" for what KILN_0.1 promised, "name KILN_0.2" for what
came later, "name KILN_UNSTABLE" for what include/kiln/unstable and include/kiln/sys declare: the map of
the library is made of it. --update rewrites the list from the headers; then build."""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "abi/libkiln.symbols"
# What libkiln.so may be linked with: libc and the libraries of DESIGN's table, no driver.
LINKED = ("libc.", "libm.", "libnettle.", "libzstd.", "libjansson.", "ld-linux")
FIRST = "KILN_0.1"
UNSTABLE = "KILN_UNSTABLE"
# What sanitizers and coverage add is not ours.
FOREIGN = re.compile(r"^(__asan|__ubsan|__tsan|__odr_asan|__gcov|__start_|__stop_|_init$|_fini$)")
DECLARED = re.compile(r"^KILN_API\b[^;]*?\b(kiln_\w+)\(", re.M | re.S)


def names(*arguments):
    out = subprocess.run(["nm", "--defined-only", *arguments], check=True, capture_output=True,
                         text=True).stdout
    found = {line.split()[-1] for line in out.splitlines() if len(line.split()) == 3}
    return {name for name in found if not FOREIGN.match(name)}


def linked(library):
    out = subprocess.run(["readelf", "-d", library], check=True, capture_output=True,
                         text=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.*)\]", out)


def read_list():
    """Version by name."""
    words = [line.split() for line in LIST.read_text().splitlines()]
    return {word[0]: (word[1] if len(word) > 1 else FIRST) for word in words}


def declared():
    """False by name where it is not promised."""
    found = {}
    for header in sorted((ROOT / "include/kiln").rglob("*.h")):
        folder = header.relative_to(ROOT / "include/kiln").parts[0]
        for name in DECLARED.findall(header.read_text()):
            found[name] = folder not in ("unstable", "sys")
    return found


def update(listed, wanted):
    """What is promised already keeps the version that promised it."""
    release = re.search(r"^project\(kiln VERSION (\d+\.\d+)", (ROOT / "CMakeLists.txt").read_text(),
                        re.M).group(1)
    lines = []
    for name, promised in sorted(wanted.items()):
        before = listed.get(name, UNSTABLE)
        version = UNSTABLE if not promised else f"KILN_{release}" if before == UNSTABLE else before
        lines.append(name if version == FIRST else f"{name} {version}")
    LIST.write_text("".join(line + "\n" for line in lines))
    return read_list()


def count_in_docs(wanted):
    """docs/reference/api.md says how many functions are promised, and how many are not."""
    sys_count = len(DECLARED.findall("".join(h.read_text() for h in (ROOT / "include/kiln/sys").glob("*.h"))))
    promised = sum(wanted.values())
    counts = {"kiln/*.h": promised, "kiln/unstable/*.h": len(wanted) - promised - sys_count, "kiln/sys/*.h": sys_count}
    text = (ROOT / "docs/reference/api.md").read_text()
    return [f"docs/reference/api.md: {count} functions are declared in {headers}" for headers, count in counts.items()
            if not re.search(rf"^\| `{re.escape(headers)}`[^|]*\| {count} \|", text, re.M)]


def main():
    build = Path(sys.argv[1])
    bad = []
    for name in sorted(names("-g", str(build / "src/libkiln.a"))):
        if not name.startswith(("kiln_", "kn_")):
            bad.append(f"libkiln.a: {name}: a global name begins with kiln_ or kn_")
    for name in linked(str(build / "src/libkiln.so")):
        if not name.startswith(LINKED):
            bad.append(f"libkiln.so: linked with {name}: vendors' libraries are opened at run time")
    listed, wanted = read_list(), declared()
    if "--update" in sys.argv:
        listed = update(listed, wanted)
    for name in sorted(wanted.keys() | listed.keys()):
        if (name in wanted) != (name in listed) or wanted[name] != (listed[name] != UNSTABLE):
            bad.append(f"abi/libkiln.symbols: {name}: not as the headers have it "
                       "(scripts/check_symbols.py BUILD --update)")
    bad += count_in_docs(wanted)
    exported = {}
    for name in names("-D", str(build / "src/libkiln.so")):
        name, _, version = name.partition("@@")
        if name != version and not name.startswith("KILN_"):  # the versions themselves
            exported[name] = UNSTABLE if version.startswith(UNSTABLE + "_") else version
    for name in sorted(exported.keys() | listed.keys()):
        if exported.get(name) != listed.get(name):
            bad.append(f"libkiln.so: {name} is exported as {exported.get(name)}, "
                       f"abi/libkiln.symbols has {listed.get(name)}: build it again")
    print("\n".join(bad), end="\n" if bad else "")
    return 1 if bad else 0


sys.exit(main())
