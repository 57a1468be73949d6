#!/usr/bin/env python3
"""check_symbols.py BUILD [--update]: the archive's globals are kiln_ or kn_ only, the shared library
exports exactly abi/libkiln.symbols (--update rewrites that list), each under the version of the release
that brought it, and it is linked with nothing that a vendor makes. A line of the list is "name", or
"name VERSION" for what came after KILN_0.1."""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "abi/libkiln.symbols"
# What libkiln.so may be linked with: libc and the libraries of DESIGN's table, no driver.
LINKED = ("libc.", "libm.", "libcrypto.", "libxxhash.", "libzstd.", "libjansson.", "ld-linux")
FIRST = "KILN_0.1"
# What sanitizers and coverage add is not ours.
FOREIGN = re.compile(r"^(__asan|__ubsan|__tsan|__odr_asan|__gcov|__start_|__stop_|_init$|_fini$)")


def names(*arguments):
    out = subprocess.run(["nm", "--defined-only", *arguments], check=True, capture_output=True,
                         text=True).stdout
    found = {line.split()[-1] for line in out.splitlines() if len(line.split()) == 3}
    return {name for name in found if not FOREIGN.match(name)}


def linked(library):
    out = subprocess.run(["readelf", "-d", library], check=True, capture_output=True,
                         text=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.*)\]", out)


def main():
    build = Path(sys.argv[1])
    bad = 0
    for name in sorted(names("-g", str(build / "src/libkiln.a"))):
        if not name.startswith(("kiln_", "kn_")):
            print(f"libkiln.a: {name}: a global name begins with kiln_ or kn_")
            bad = 1
    for name in linked(str(build / "src/libkiln.so")):
        if not name.startswith(LINKED):
            print(f"libkiln.so: linked with {name}: vendors' libraries are opened at run time")
            bad = 1
    exported = set()
    for name in names("-D", str(build / "src/libkiln.so")):
        name, _, version = name.partition("@@")
        if name != version and not name.startswith("KILN_"):  # the versions themselves
            exported.add(name if version == FIRST else f"{name} {version or 'no version'}")
    if "--update" in sys.argv:
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text("".join(name + "\n" for name in sorted(exported)))
    golden = set(GOLDEN.read_text().splitlines())
    for name in sorted(exported - golden):
        print(f"libkiln.so: {name} is exported and not in abi/libkiln.symbols "
              "(scripts/check_symbols.py BUILD --update)")
    for name in sorted(golden - exported):
        print(f"libkiln.so: {name} is in abi/libkiln.symbols and not exported")
    return 1 if bad or exported != golden else 0


sys.exit(main())
