#!/usr/bin/env python3
"""faulty_drivers.py KILN FAULTY MANIFEST: a Vulkan or an EGL driver that crashes, hangs, aborts or
ends the process while it is probed costs one line of `kiln doctor` and nothing else (row 75)."""
import ctypes.util
import json
import os
import subprocess
import sys
import tempfile

EXPECTED = {"crash": {"crashed"}, "abort": {"crashed"}, "hang": {"timed out"},
            "exit": {"crashed", "failed"}}


def skip(reason):
    print(f"SKIP vulkan: {reason}")
    sys.exit(77)


def doctor(program, folder, changes):
    environment = dict(os.environ, KILN_CACHE_DIR=f"{folder}/cache", **changes)
    done = subprocess.run([program, "doctor", "--json", "--timeout", "5s"], env=environment,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=120)
    if done.returncode != 0:
        sys.exit(f"{changes}: kiln doctor ended with {done.returncode}")
    rows = json.loads(done.stdout)["backends"]
    return {row["backend"]: row for row in rows}


def check(program, folder, backend, how, changes):
    reports = doctor(program, folder, dict(changes, KILN_FAULTY=how))
    got = reports[backend]["outcome"]
    if got not in EXPECTED[how] or not reports[backend]["why"]:
        sys.exit(f"{backend} {how}: {reports[backend]}")
    if reports["cpu"]["outcome"] != "ready":
        sys.exit(f"{backend} {how}: it took cpu along: {reports['cpu']}")
    print(f"{backend}: {how} is '{got}', the rest goes on")


def main():
    program, faulty = sys.argv[1:3]
    if ctypes.util.find_library("vulkan") is None or ctypes.util.find_library("EGL") is None:
        skip("no Vulkan loader, or no EGL")
    with tempfile.TemporaryDirectory(prefix="kiln-faulty-") as folder:
        icd = f"{folder}/icd.json"
        vendor = f"{folder}/egl.json"
        with open(icd, "w", encoding="utf-8") as file:
            json.dump({"file_format_version": "1.0.0",
                       "ICD": {"library_path": faulty, "api_version": "1.1.0"}}, file)
        with open(vendor, "w", encoding="utf-8") as file:
            json.dump({"file_format_version": "1.0.0", "ICD": {"library_path": faulty}}, file)
        for how in EXPECTED:
            check(program, folder, "vulkan", how,
                  {"VK_ICD_FILENAMES": icd, "VK_DRIVER_FILES": icd})
            check(program, folder, "opengl", how, {"__EGL_VENDOR_LIBRARY_FILENAMES": vendor})


main()
