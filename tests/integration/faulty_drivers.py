#!/usr/bin/env python3
"""faulty_drivers.py KILN FAULTY MANIFEST: a Vulkan or an EGL driver that crashes, hangs, aborts or
ends the process while it is probed costs one line of `kiln doctor`, `kiln devices` and `kiln run`
and nothing else (rows 75, P1); the next start knows of it and does not ask it again."""
import ctypes.util
import json
import os
import subprocess
import sys
import tempfile

EXPECTED = {"crash": {"crashed"}, "abort": {"crashed"}, "hang": {"timed out"},
            "exit": {"crashed"}}


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


def command(program, arguments, changes):
    environment = dict(os.environ, **changes)
    done = subprocess.run([program] + arguments, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    if done.returncode != 0:
        sys.exit(f"{changes}: kiln {arguments} ended with {done.returncode}: {done.stderr}")
    return done


def check_start(program, manifest, folder, backend, how, changes):
    """A new cache folder: the first start looks in a child, the second remembers."""
    cache = dict(changes, KILN_FAULTY=how,
                 KILN_CACHE_DIR=f"{folder}/{backend}-{how}")
    run = ["run", manifest, "--kernel", "saxpy", "--device", "cpu:0", "--json"]
    for start in ("first", "second"):
        done = command(program, ["devices", "--json"], cache)
        row = {row["backend"]: row for row in json.loads(done.stdout)["backends"]}[backend]
        told = done.stderr.count(f"{backend}: crashed")
        if row["outcome"] != "crashed" or row["remembered"] != (start == "second"):
            sys.exit(f"{backend}, {start} start: {row}")
        if told != (1 if start == "first" else 0):
            sys.exit(f"{backend}, {start} start: told {told} times: {done.stderr}")
        command(program, run, cache)
    bare = dict(cache, KILN_NO_CACHE="1")
    if "crashed" not in command(program, ["devices", "--json"], bare).stdout:
        sys.exit(f"{backend}: without a cache it is not told")
    print(f"{backend} {how}: devices and run go on, the second time from memory")


def main():
    program, faulty, manifest = sys.argv[1:4]
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
        for backend, changes in (("vulkan", {"VK_ICD_FILENAMES": icd, "VK_DRIVER_FILES": icd}),
                                 ("opengl", {"__EGL_VENDOR_LIBRARY_FILENAMES": vendor})):
            for how in ("abort", "exit"):
                check_start(program, manifest, folder, backend, how, changes)


main()
