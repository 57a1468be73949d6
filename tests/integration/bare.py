#!/usr/bin/env python3
"""bare.py KILN MANIFEST: a machine with less than everything. Without OpenCL and without a C compiler
the kernels that are built into the program still run; without OpenCL, kernels in C do, too."""
import json
import os
import subprocess
import sys
import tempfile


def run(program, manifest, folder, **changes):
    environment = dict(os.environ, KILN_CACHE_DIR=f"{folder}/cache", **changes)
    for variable in ("KILN_BACKEND", "KILN_DEVICE", "CC"):
        environment.pop(variable, None)
    done = subprocess.run([program, "run", manifest, "--all-devices", "--json"], env=environment,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=120)
    rows = json.loads(done.stdout)["results"]
    if done.returncode != 0:
        sys.exit(f"{changes}: kiln ended with {done.returncode}: {rows}")
    return rows


def check(name, rows, want, compiles):
    wrong = [row for row in rows if not row["ok"] or row["backend"] != "cpu"]
    if wrong or {row["kernel"] for row in rows} != want:
        sys.exit(f"{name}: {wrong or rows}")
    if (sum(row["compiles"] for row in rows) > 0) != compiles:
        sys.exit(f"{name}: {'nothing' if compiles else 'something'} was compiled")
    print(f"{name}: {len(rows)} kernels are right")


def main():
    program, manifest = sys.argv[1:3]
    with open(manifest, encoding="utf-8") as file:
        want = {kernel["name"] for kernel in json.load(file)["kernels"]}
    with tempfile.TemporaryDirectory(prefix="kiln-bare-") as folder:
        # The loader of OpenCL finds no driver in an empty directory.
        empty = f"{folder}/empty/"
        os.mkdir(empty)
        nothing = {"OCL_ICD_VENDORS": empty, "CUDA_VISIBLE_DEVICES": "",
                   "VK_ICD_FILENAMES": f"{empty}none", "VK_DRIVER_FILES": f"{empty}none",
                   "__EGL_VENDOR_LIBRARY_FILENAMES": f"{empty}none"}
        check("no OpenCL, no compiler", run(program, manifest, folder, PATH=empty, **nothing), want,
              False)
        check("no OpenCL", run(program, manifest, folder, **nothing), want, True)


main()
