#!/usr/bin/env python3
"""nvrtc.py KILN LIBEXEC REAL COUNTS ALLOCATOR: every call sequence of nvrtc_client.py on NVRTC alone, then on
kiln's library in its place: cold, warm, with the cache full, read-only and gone, with the core
missing, disabled. All transcripts must be equal. REAL is a libnvrtc.so.N; COUNTS is "fake" for the
fake one, whose $FAKENVRTC_LOG has a line a compile. ALLOCATOR is a
library with a malloc of its own."""
import collections
import ctypes
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

KILN, LIBEXEC, REAL, KIND, ALLOCATOR = sys.argv[1:6]
CLIENT = Path(__file__).with_name("nvrtc_client.py")
SLOW_TO_REPEAT = ("each_option", "core_libraries")
FEWEST = {"real": 20, "fake": 2}
FAKE_CASES = ["machine_code", "compile_error", "headers_in_memory", "name_expressions", "encrypted_source",
              "encrypted_source_with_a_wrong_word", "unknown_handles", "two_headers_of_one_name"]
FAKE_BYPASSED = 5  # compiles in them of programs that NVRTC creates by itself


def find_real():
    """The NVRTC of a toolkit, where REAL is not a file."""
    if os.path.exists(REAL):
        return os.path.realpath(REAL)
    for base in (os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), "/usr/local/cuda"):
        for below in ("lib64", "lib", "targets/x86_64-linux/lib"):
            for major in (13, 12):
                path = f"{base}/{below}/libnvrtc.so.{major}"
                if base and os.path.exists(path):
                    return os.path.realpath(path)
    print("SKIP cuda: no libnvrtc.so.12 or 13 (install a CUDA toolkit, or set CUDA_PATH)")
    sys.exit(77)


class Suite:
    def __init__(self, root):
        self.root = Path(root)
        self.real = find_real()
        major = re.search(r"libnvrtc\.so\.(\d+)", self.real).group(1)
        self.front = f"{LIBEXEC}/nvrtc/{major}/libnvrtc.so.{major}"
        names = ["nvrtcGetLTOIRSize", "nvrtcGetOptiXIRSize", "nvrtcGetPTXSize",
                 "nvrtcGetNumSupportedArchs", "nvrtcSetFlowCallback", "nvrtcGetPCHCreateStatus",
                 "__nvrtcCPEx"]
        self.lacks = [name for name in names if not hasattr(ctypes.CDLL(self.real), name)]
        # The fake one does not check what it is given.
        self.cases = [] if KIND == "real" else FAKE_CASES
        self.work = self.root / "work"
        (self.work / "sub").mkdir(parents=True)
        (self.work / "value.h").write_text("#define VALUE 1\n")
        (self.work / "sub/value.h").write_text("#define VALUE 2\n")
        self.log = self.root / "compiles"
        self.report = self.root / "report"
        self.cache = self.root / "cache"

    def run(self, library, *cases, **variables):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("KILN_", "NVRTC_"))}
        env.update(KILN_CACHE_DIR=str(self.cache), KILN_NVRTC_LIBRARY=self.real,
                   CUDA_CACHE_PATH=str(self.root / "nv"), FAKENVRTC_LOG=str(self.log),
                   KILN_EXEC_REPORT=str(self.report))
        if KIND == "fake":  # NVRTC opens its builtins by name: those of a machine's own toolkit need not be there
            env["LD_LIBRARY_PATH"] = str(Path(self.real).parent)
        env["NVRTC_KIND"] = KIND
        env["NVRTC_INCLUDE"] = str(Path(self.real).parent.parent / "include")
        env["NVRTC_LACKS"] = ",".join(self.lacks)
        env.update(variables)
        self.log.write_text("")
        self.report.write_text("")
        done = subprocess.run([sys.executable, str(CLIENT), library, *cases], env=env,
                              cwd=self.work, capture_output=True, text=True, timeout=280)
        if done.returncode != 0:
            sys.exit(f"the client ended with {done.returncode}: {done.stderr[-2000:]}")
        if done.stderr:
            sys.exit(f"something was printed: {done.stderr[-2000:]}")
        return {name: said for name, said in map(json.loads, done.stdout.splitlines())}

    def compiles(self):
        return len(self.log.read_text().splitlines())

    def uncached(self):
        """Compiles for which NVRTC was kept from its own cache."""
        return sum(" --no-cache" in line for line in self.log.read_text().splitlines())

    def origins(self):
        rows = [line.split("\t") for line in self.report.read_text().splitlines()]
        if any(len(row) != (6 if row[1] in ("bypassed", "failed") else 7) for row in rows):
            sys.exit(f"a line of the report is not whole: {rows}")
        return collections.Counter(row[1] for row in rows)

    def expect(self, wanted, got, when):
        for name in got:
            if wanted[name] != got[name]:
                for a, b in zip(wanted[name], got[name]):
                    if a != b:
                        sys.exit(f"{when}: {name}:\n  NVRTC {json.dumps(a)[:1500]}\n"
                                 f"  kiln  {json.dumps(b)[:1500]}")
                sys.exit(f"{when}: {name}: {wanted[name]} is not {got[name]}")
        print(f"ok: {when}: {len(got)} cases equal")


def check_process_state(suite):
    """What NVRTC remembers for its process reaches no other process through the cache."""
    own = {"KILN_CACHE_DIR": str(suite.root / "state")}
    spoilt = suite.run(suite.real, "after_restrict")
    fresh = suite.run(suite.real, "one_that_reads")
    suite.expect(spoilt, suite.run(suite.front, "after_restrict", **own), "after -restrict")
    suite.expect(fresh, suite.run(suite.front, "one_that_reads", **own), "in a process without -restrict")
    suite.expect(spoilt, suite.run(suite.front, "after_restrict", **own), "after -restrict, the others cached")
    variable = {"NV_NVVM_VERSION": "nvvm-latest"}
    other = suite.run(suite.real, "one_that_reads", **variable)
    suite.expect(other, suite.run(suite.front, "one_that_reads", **own, **variable), "with NV_NVVM_VERSION")
    if suite.origins() != {"bypassed": 1}:
        sys.exit(f"with NV_NVVM_VERSION: {suite.origins()}")
    late = suite.run(suite.front, "loaded_with_a_variable", **own)["loaded_with_a_variable"]
    suite.expect(other, {"one_that_reads": late}, "with NV_NVVM_VERSION while NVRTC is loaded")
    encrypted = "after_an_encrypted_restrict"
    suite.expect(suite.run(suite.real, encrypted), suite.run(suite.front, encrypted, **own), "after an encrypted -restrict")
    suite.expect(fresh, suite.run(suite.front, "one_that_reads", **own), "and without it again")
    if suite.origins() != {"disk": 1}:
        sys.exit(f"without NV_NVVM_VERSION: {suite.origins()}")


def check_newer(suite):
    """kiln exec leaves an NVRTC alone that has a function which kiln's library lacks."""
    toolkit = suite.root / "toolkit/lib64"
    toolkit.mkdir(parents=True)
    library = toolkit / os.path.basename(suite.front)
    for name, stands in (("nvrtcVersion", True), ("__nvrtcCPEy", False), ("nvrtcGetMore", False), ("other", True)):
        subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)], check=True, text=True,
                       input=f"int nvrtcCreateProgram(void) {{ return 0; }} int {name}(void) {{ return 0; }}")
        env = {**os.environ, "KILN_NVRTC_LIBRARY": str(library), "KILN_LIBEXEC": LIBEXEC}
        said = subprocess.run([KILN, "exec", "--print", "--", "/bin/true"], env=env, capture_output=True, text=True,
                              check=True).stdout
        if (f"/nvrtc/{library.name.rsplit('.', 1)[1]}" in said) != stands or "CUDNN" in said:
            sys.exit(f"a library with {name}: {said}")
    print("ok: a newer release is left alone")


def main():
    with tempfile.TemporaryDirectory() as root:
        suite = Suite(root)
        wanted = suite.run(suite.real, *suite.cases)
        plain = suite.compiles()
        suite.expect(wanted, suite.run(suite.front, *suite.cases), "cold")
        cold = suite.origins()
        if KIND == "fake" and suite.uncached() < cold["compiled"]:
            sys.exit(f"cold: {suite.uncached()} compiles without NVRTC's own cache, {cold}")
        suite.expect(wanted, suite.run(suite.front, *suite.cases), "warm")
        warm = suite.origins()
        if warm["compiled"] != 0 or warm["disk"] + warm["memory"] < FEWEST[KIND] or cold["compiled"] < FEWEST[KIND]:
            sys.exit(f"cold {cold}, warm {warm}")
        if KIND == "fake" and not suite.compiles() < plain:
            sys.exit(f"warm: {suite.compiles()} compiles of {plain}")
        if KIND == "fake" and warm["bypassed"] != FAKE_BYPASSED:
            sys.exit(f"compiles of encrypted sources are not counted: {warm}")
        print(f"ok: cold {dict(cold)}, warm {dict(warm)}")

        few = [name for name in wanted if name not in SLOW_TO_REPEAT]
        few = few if KIND == "real" else ["machine_code"]
        private = [*few, "encrypted_source_with_a_wrong_word", "unknown_handles"]
        suite.expect(wanted, suite.run(suite.front, *private, KILN_DISABLE="1"), "disabled")
        if suite.uncached() > 0:
            sys.exit("disabled: an option was added")
        suite.expect(wanted, suite.run(suite.front, *few, KILN_CACHE_DIR=str(suite.root / "full"),
                                       KILN_CACHE_MAX_SIZE="1"), "a cache that is full")
        suite.expect(wanted, suite.run(suite.front, *few, KILN_CACHE_DIR="/proc/none"),
                     "a cache that cannot be made")
        suite.expect(wanted, suite.run(suite.front, *few, KILN_READONLY="1"), "read-only")
        own = {"LD_PRELOAD": ALLOCATOR, "KILN_CACHE_DIR": str(suite.root / "allocated")}
        allocated = ["machine_code", "compile_error"]
        suite.expect(wanted, suite.run(suite.front, *allocated, **own), "with the program's malloc, cold")
        suite.expect(wanted, suite.run(suite.front, *allocated, **own), "and warm")
        suite.expect(wanted, suite.run(suite.front, *few, KILN_CACHE_DIR="not absolute"),
                     "a wrong variable")

        alone = suite.root / "alone/nvrtc/13"
        alone.mkdir(parents=True)
        copy = alone / os.path.basename(suite.front)
        shutil.copy(suite.front, copy)
        suite.expect(wanted, suite.run(str(copy), *private), "without the core")
        broken = suite.root / "alone/libkiln-interpose.so"
        broken.write_bytes(b"\x7fELF, and nothing more")
        broken.chmod(broken.stat().st_mode | stat.S_IXUSR)
        suite.expect(wanted, suite.run(str(copy), *few), "with a broken core")

        if KIND == "fake":
            check_newer(suite)
            return
        # A header that changes is seen; one that comes back hits again.
        value = suite.work / "value.h"
        value.write_text("#define VALUE 5\n")
        changed = suite.run(suite.real, "includes")
        if changed["includes"] == wanted["includes"]:
            sys.exit("the test's header does not matter")
        suite.expect(changed, suite.run(suite.front, "includes"), "after an edit")
        value.write_text("#define VALUE 1\n")
        suite.expect(wanted, suite.run(suite.front, "includes"), "after the edit was undone")
        (suite.work / "sub/value.h").write_text("#define VALUE 6\n")
        blanks = suite.run(suite.real, "blanks_around_a_directory")
        if blanks == {name: wanted[name] for name in blanks}:
            sys.exit("the test's header in sub does not matter")
        suite.expect(blanks, suite.run(suite.front, "blanks_around_a_directory"), "an edit behind a blank")
        check_process_state(suite)


main()
