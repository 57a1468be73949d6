#!/usr/bin/env python3
"""jitlink.py KILN LIBEXEC REAL KIND ALLOCATOR: every call sequence of jitlink_client.py on nvJitLink alone, then on
kiln's library in its place: cold, warm, with the cache full, read-only and gone, with the core
missing, disabled. All transcripts must be equal. REAL is a libnvJitLink.so.N, or "none" for a
toolkit's. KIND is "fake" for the fake one, whose $FAKENVJITLINK_LOG has a line a step. ALLOCATOR is
a library with a malloc of its own."""
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

KILN, LIBEXEC, REAL, KIND, ALLOCATOR = sys.argv[1:6]
CLIENT = Path(__file__).with_name("jitlink_client.py")


def find_in_toolkit(stem):
    for base in (os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"), "/usr/local/cuda"):
        for below in ("lib64", "lib", "targets/x86_64-linux/lib"):
            for major in (13, 12):
                path = f"{base}/{below}/{stem}.so.{major}"
                if base and os.path.exists(path):
                    return os.path.realpath(path)
    return None


def names_of(path):
    """The functions that a library exports, with their version nodes."""
    lines = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True,
                           check=True).stdout.splitlines()
    return {line.split()[2] for line in lines if line.split()[1] in "TW"}


class Suite:
    def __init__(self, root):
        self.root = Path(root)
        self.real = REAL if os.path.exists(REAL) else find_in_toolkit("libnvJitLink")
        self.nvrtc = find_in_toolkit("libnvrtc")
        if self.real is None or (self.nvrtc is None and KIND == "real"):
            print("SKIP cuda: no libnvJitLink.so.12 or 13 with its NVRTC (install a CUDA toolkit, or set CUDA_PATH)")
            sys.exit(77)
        self.major = re.search(r"libnvJitLink\.so\.(\d+)", self.real).group(1)
        self.front = f"{LIBEXEC}/nvjitlink/{self.major}/libnvJitLink.so.{self.major}"
        self.releases = sorted(m.group(1) for m in (re.match(r"__nvJitLinkCreate_(\d+_\d+)@", n)
                                                    for n in names_of(self.real)) if m)
        self.cases = [name for name in re.findall(r"@case\ndef (\w+)", CLIENT.read_text())
                      if name != "what_fails" and (KIND == "real" or name != "link_time_optimization")]
        self.work = self.root / "work"
        self.work.mkdir()
        (self.work / "source.py").write_text("pass\n")
        text = CLIENT.read_text().split('KERNEL = """')[1].split('"""')[0]
        (self.work / "kernel.ptx").write_text(text.replace("NAME", "file").replace("VALUE", "3"))
        self.report = self.root / "report"
        self.cache = self.root / "cache"
        self.log = self.root / "steps"

    def run(self, library, *cases, **variables):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("KILN_", "NVRTC_", "NVJITLINK_"))}
        env.update(KILN_CACHE_DIR=str(self.cache), KILN_NVJITLINK_LIBRARY=self.real,
                   CUDA_CACHE_DISABLE="1", KILN_EXEC_REPORT=str(self.report),
                   FAKENVJITLINK_LOG=str(self.log), JITLINK_RELEASES=",".join(self.releases))
        env.update(variables)
        self.report.write_text("")
        self.log.write_text("")
        said = {}
        # nvJitLink 13.0 crashes in a process that linked LTO-IR and then meets an error in PTX.
        for part in [cases] if cases else [self.cases, ["what_fails"]]:
            done = subprocess.run([sys.executable, str(CLIENT), library, self.nvrtc or "none", *part], env=env,
                                  cwd=self.work, capture_output=True, text=True, timeout=280)
            if done.returncode != 0:
                sys.exit(f"the client ended with {done.returncode}: {done.stderr[-2000:]}")
            printed = [line for line in done.stderr.splitlines() if line and not line.startswith("@E@")]
            if printed:  # "@E@" is nvJitLink itself, of what fails
                sys.exit(f"something was printed: {printed}")
            said.update(map(json.loads, done.stdout.splitlines()))
        return said

    def origins(self):
        return collections.Counter(line.split("\t")[1] for line in self.report.read_text().splitlines())

    def links(self):
        return self.log.read_text().splitlines().count("complete")

    def expect(self, wanted, got, when):
        for name in got:
            if wanted[name] != got[name]:
                for a, b in zip(wanted[name], got[name]):
                    if a != b:
                        sys.exit(f"{when}: {name}:\n  nvJitLink {json.dumps(a)[:1800]}\n"
                                 f"  kiln      {json.dumps(b)[:1800]}")
                sys.exit(f"{when}: {name}: {wanted[name]} is not {got[name]}")
        print(f"ok: {when}: {len(got)} cases equal")


def check_newer(suite):
    """kiln exec leaves a release alone that has a function which kiln's library lacks."""
    toolkit = suite.root / "toolkit/lib64"
    toolkit.mkdir(parents=True)
    library = toolkit / f"libnvJitLink.so.{suite.major}"
    for name, preloaded in (("nvJitLinkComplete", True), ("__nvJitLinkComplete_99_0", False), ("other", True)):
        subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)], check=True, text=True,
                       input=f"int nvJitLinkCreate(void) {{ return 0; }} int {name}(void) {{ return 0; }}")
        env = {**os.environ, "KILN_NVJITLINK_LIBRARY": str(library), "KILN_LIBEXEC": LIBEXEC}
        said = subprocess.run([KILN, "exec", "--print", "--", "/bin/true"], env=env, capture_output=True, text=True,
                              check=True).stdout
        preloads = [line for line in said.splitlines() if line.startswith("export LD_PRELOAD=")]
        if (f"/libnvJitLink.so.{suite.major}" in "".join(preloads)) != preloaded:
            sys.exit(f"a library with {name}: {said}")
    print("ok: a newer release is left alone")


def main():
    with tempfile.TemporaryDirectory() as root:
        suite = Suite(root)
        lacking = names_of(suite.real) - names_of(suite.front)
        if lacking:
            sys.exit(f"kiln's library lacks {sorted(lacking)}")
        wanted = suite.run(suite.real)
        alone = suite.links()
        suite.expect(wanted, suite.run(suite.front), "cold")
        cold = suite.origins()
        links, told = suite.links(), sum(cold[word] for word in ("compiled", "bypassed", "failed"))
        suite.expect(wanted, suite.run(suite.front), "warm")
        warm = suite.origins()
        if warm["compiled"] != 0 or warm["disk"] + warm["memory"] < 30 or cold["compiled"] < 20:
            sys.exit(f"cold {cold}, warm {warm}")
        if KIND == "fake" and not suite.links() < alone // 2:  # what fails is linked again
            sys.exit(f"warm: {suite.links()} links of {alone}")
        if KIND == "fake" and told < links - 2:  # of two handles, which are completed twice, once
            sys.exit(f"{links} links were made, and {told} are in the report")
        print(f"ok: cold {dict(cold)}, {links} links, warm {dict(warm)}")

        few = ["version", "one_input", "orders_of_calls"]
        for when, more in {"disabled": {"KILN_DISABLE": "1"},
                           "a cache that is full": {"KILN_CACHE_DIR": str(suite.root / "full"),
                                                    "KILN_CACHE_MAX_SIZE": "1"},
                           "a cache that cannot be made": {"KILN_CACHE_DIR": "/proc/none"},
                           "read-only": {"KILN_READONLY": "1"},
                           "a wrong variable": {"KILN_CACHE_DIR": "not absolute"},
                           "with the program's malloc": {"LD_PRELOAD": ALLOCATOR,
                                                         "KILN_CACHE_DIR": str(suite.root / "allocated")},
                           "no cache": {"KILN_NO_CACHE": "1"}}.items():
            suite.expect(wanted, suite.run(suite.front, *few, **more), when)
        alone = suite.root / f"alone/nvjitlink/{suite.major}"
        alone.mkdir(parents=True)
        copy = alone / os.path.basename(suite.front)
        shutil.copy(suite.front, copy)
        suite.expect(wanted, suite.run(str(copy), *few), "without the core")
        (suite.root / "alone/libkiln-interpose.so").write_bytes(b"\x7fELF, and nothing more")
        suite.expect(wanted, suite.run(str(copy), *few), "with a broken core")

        check_newer(suite)
        maps = suite.run(suite.front, "one_input", "maps")["maps"]
        if any("/nvjitlink/" not in name for name in maps) or not maps:
            sys.exit(f"a hit mapped {maps}")
        print("ok: a hit does not map nvJitLink")


main()
