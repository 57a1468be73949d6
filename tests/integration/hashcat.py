#!/usr/bin/env python3
"""hashcat.py [--compile N] [--every N] KILN KERNELS…: hashcat's OpenCL kernels as they are, with the options that
hashcat gives: every file includes by `#include M2S(INCLUDE_PATH/x.h)`, and one header names
<metal_stdlib> in a branch that OpenCL does not take. KERNELS are directories to look in; the first that
exists is copied and used.

  keys                    every mode has one, none is bypassed; later steps take one in N (default 8)
  a few modes             compiled once, then hits; N of them (default 2), spread over all
  a header edited         exactly the modes that reach it have another key, and those compiled before
                          are compiled again or hit
  <metal_stdlib> appears  every key is another; as it was when it is gone

Keys and counters are the judge, not times."""
import argparse
import json
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

import patience

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(?:M2S\(INCLUDE_PATH/([^)]+)\)|"([^"]+)"|(\w+)[ \t]*$)',
                     re.MULTILINE)
DEFINED = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+M2S\(INCLUDE_PATH/([^)]+)\)",
                     re.MULTILINE)
LIMIT_S = 3000
EDITED = ["inc_hash_md5.h", "inc_cipher_aes.h", "inc_types.h", "inc_rp_optimized.cl",
          "inc_hash_sha512.cl"]


def skip(reason):
    required = "opencl" in os.environ.get("KILN_REQUIRE", "").split(",") and "OpenCL" in reason
    print(f"{'REQUIRED' if required else 'SKIP'} {reason}")
    sys.exit(1 if required else 77)


def options(kernels):
    """hashcat's own, for a CPU device of PoCL."""
    defines = {"LOCAL_MEM_TYPE": 2, "VENDOR_ID": 64, "CUDA_ARCH": 0, "VECT_SIZE": 1,
               "DEVICE_TYPE": 2, "DGST_R0": 0, "DGST_R1": 3, "DGST_R2": 2, "DGST_R3": 1,
               "DGST_ELEM": 4, "KERN_TYPE": 0, "ATTACK_EXEC": 11, "ATTACK_KERN": 3,
               "ATTACK_MODE": 3}
    defines.update((f"HAS_{name}", 0) for name in
                   "ADD ADDC SUB SUBC VADD VADDC VADD_CO VADDC_CO VSUB VSUBB VPERM VADD3 VBFE BFE "
                   "LOP3 MOV64 PRMT".split())
    return " ".join([f"-D KERNEL_STATIC -D INCLUDE_PATH={kernels}", "-D XM2S(x)=#x",
                     "-D M2S(x)=XM2S(x)"] + [f"-D {k}={v}" for k, v in defines.items()] + ["-w"])


class Kiln:
    def __init__(self, program, folder, kernels):
        self.program, self.folder, self.kernels = program, folder, kernels
        (folder / "pocl").mkdir()

    def run(self, *arguments):
        environment = dict(os.environ, KILN_CACHE_DIR=f"{self.folder}/cache",
                           POCL_CACHE_DIR=f"{self.folder}/pocl")
        return patience.run([self.program, *map(str, arguments)], LIMIT_S, env=environment)

    def work(self, command, files):
        done = self.run(command, "-b", "opencl", "-I", self.kernels, "-X", options(self.kernels),
                        "--json", *files)
        try:
            return json.loads(done.stdout)
        except ValueError:
            sys.exit(f"kiln {command}: no JSON: {done.stdout[:300]} {done.stderr[:600]}")

    def keys(self, files):
        """File -> key. A bypassed one has none."""
        return {Path(row["what"]): row["key"] if row["why"] != "never cached" else None
                for row in self.work("explain", files)["explanations"]}

    def compile(self, files):
        rows = self.work("compile", files)["files"]
        bad = [f"{row['file']}: {row.get('reason')}" for row in rows if not row["ok"]]
        if bad:
            sys.exit(f"not compiled: {bad}")
        return {Path(row["file"]) for row in rows if row["origin"] == "compiled"}

    def counters(self):
        return json.loads(self.run("stats", "--json").stdout)["counters"]


def named(text, macros):
    """What one text includes; the macros that it defines for an include are added."""
    for name, target in DEFINED.findall(text):
        macros.setdefault(name, set()).add(target)
    return INCLUDE.findall(text)


def reached(source):
    """Names of the files that a kernel includes, directly or not, in any branch."""
    found, todo, macros, used = set(), [source], {}, set()
    while todo:
        names = set()
        for computed, plain, macro in named(todo.pop().read_text(errors="replace"), macros):
            used |= {macro} - {""}
            names |= {computed or plain} - {""}
        names = names.union(*(macros.get(macro, set()) for macro in used)) - found
        found |= names
        todo += [source.parent / name for name in names if (source.parent / name).is_file()]
    return found


def expect(name, got, want):
    if got != want:
        parts = [sorted(path.name for path in part)[:10] for part in (got - want, want - got)]
        sys.exit(f"{name}: without need: {parts[0]}; missing: {parts[1]}")
    print(f"{name}: {len(got)}", flush=True)


def edit(header):
    text = header.read_text()
    header.write_text(text + "\n// edited\n")
    return text


def changed(kiln, modes, before):
    after = kiln.keys(modes)
    return {mode for mode in modes if after[mode] != before[mode]}


def check(kiln, kernels, count, every):
    modes = sorted(path for path in kernels.glob("*.cl") if not path.name.startswith("inc_")
                   and "M2S(INCLUDE_PATH/" in path.read_text(errors="replace"))
    before = kiln.keys(modes)
    expect("modes with a key", {mode for mode in modes if before[mode]}, set(modes))
    modes = modes[::every]
    closures = {mode: reached(mode) for mode in modes}
    some = modes[:: max(1, len(modes) // count)][:count]
    expect("compiled at first", kiln.compile(some), set(some))
    expect("compiled in the second pass", kiln.compile(some), set())
    for name in EDITED:
        text = edit(kernels / name)
        users = {mode for mode in modes if name in closures[mode]}
        expect(f"keys changed by {name}", changed(kiln, modes, before), users)
        if len(users & set(some)) < len(some):  # else it would take long and show no more
            expect(f"compiled after {name}", kiln.compile(some), users & set(some))
        (kernels / name).write_text(text)
    metal = kernels / "metal_stdlib"
    metal.write_text("")
    expect("keys changed by metal_stdlib", changed(kiln, modes, before), set(modes))
    metal.unlink()
    expect("keys changed when it is gone", changed(kiln, modes, before), set())
    expect("compiled in the end", kiln.compile(some), set())
    counters = kiln.counters()
    if counters["bypassed"] or counters["corrupt"] or counters["compiles"] < len(some):
        sys.exit(f"went past the cache, or damaged it: {counters}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compile", type=int, default=2)
    parser.add_argument("--every", type=int, default=8)
    parser.add_argument("kiln")
    parser.add_argument("kernels", nargs="+", type=Path)
    arguments = parser.parse_args()
    origin = next((path for path in arguments.kernels if path.is_dir()), None)
    if origin is None:
        skip("hashcat: its kernels are not here (./dev test gets them)")
    with tempfile.TemporaryDirectory(prefix="kiln-hashcat-") as name:
        folder = Path(name)
        shutil.copytree(origin, folder / "kernels")
        kiln = Kiln(arguments.kiln, folder, folder / "kernels")
        if kiln.run("devices", "--backend", "opencl", "--json").returncode != 0:
            skip("opencl: no OpenCL device")
        check(kiln, folder / "kernels", arguments.compile, arguments.every)


main()
