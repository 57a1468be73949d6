#!/usr/bin/env python3
"""faulty_drivers.py KILN FAULTY MANIFEST: a Vulkan or an EGL driver that crashes, hangs, aborts or
ends the process while it is probed costs one line of `kiln doctor`, `kiln devices` and `kiln run`
and nothing else (rows 75, P1); the next start knows of it and does not ask it again. An OpenCL
driver that does so is named, and the others behind the same loader are used."""
import ctypes.util
import glob
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
    environment = {**os.environ, "KILN_CACHE_DIR": f"{folder}/cache", **changes}
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
    """A new cache directory: the first start looks in a child, the second remembers."""
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


def find_pocl():
    """The registration of a good driver, or None."""
    for path in sorted(glob.glob("/etc/OpenCL/vendors/*.icd")):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if "pocl" in text and ctypes.util.find_library("OpenCL") is not None:
            return text
    return None


def check_opencl(program, faulty, manifest, folder):
    """One faulty ICD beside a good one behind the same loader: it is named, and the good one works."""
    pocl = find_pocl()
    if pocl is None:
        print("SKIP opencl: no loader, or no PoCL")
        return
    vendors = f"{folder}/vendors"
    os.mkdir(vendors)
    for name, text in (("a_bad.icd", faulty), ("good.icd", pocl), ("z_bad.icd", faulty)):
        with open(f"{vendors}/{name}", "w", encoding="utf-8") as file:
            file.write(text)
    temporary = f"{folder}/temporary"
    os.mkdir(temporary)
    environment = {"OCL_ICD_VENDORS": vendors, "TMPDIR": temporary}
    for how in EXPECTED:
        changes = dict(environment, KILN_FAULTY=how, KILN_CACHE_DIR=f"{folder}/opencl-{how}")
        row = doctor(program, folder, dict(changes))["opencl"]
        if row["outcome"] != "ready" or row["devices"] == 0:
            sys.exit(f"opencl {how}: the good driver is hidden: {row}")
        for name in ("a_bad.icd", "z_bad.icd"):
            if name not in row["why"] or "good.icd" in row["why"]:
                sys.exit(f"opencl {how}: {name} is not named: {row}")
        run = ["run", manifest, "--kernel", "saxpy", "--device", "opencl:0", "--json"]
        if how != "hang":  # the time limit of a run is ten seconds a child
            for start in ("first", "second"):
                done = command(program, run, changes)
                told = done.stderr.count("a_bad.icd")
                if told != (start == "first"):
                    sys.exit(f"opencl {how}, {start} start: {told} times: {done.stderr}")
            done = command(program, ["devices", "--json"], changes)
            row = {row["backend"]: row for row in json.loads(done.stdout)["backends"]}["opencl"]
            if "z_bad.icd" not in row["why"] or "z_bad.icd" in done.stderr:
                sys.exit(f"opencl {how}: not remembered: {row} {done.stderr}")
        print(f"opencl: {how} in two of three ICDs is named, the third one works")
    # The loader of a program that had it first keeps its list: it is not opened, and nothing ends.
    loaded = dict(environment, KILN_FAULTY="crash", KILN_CACHE_DIR=f"{folder}/loaded",
                  LD_PRELOAD=ctypes.util.find_library("OpenCL"))
    # A sanitizer wants to be the first library, and says so unless an option accepts this.
    options = os.environ.get("ASAN_OPTIONS")
    loaded["ASAN_OPTIONS"] = (f"{options}:" if options else "") + "verify_asan_link_order=0"
    done = command(program, ["devices", "--json"], loaded)
    row = {row["backend"]: row for row in json.loads(done.stdout)["backends"]}["opencl"]
    if row["outcome"] != "crashed" or "a_bad.icd" not in row["why"]:
        sys.exit(f"opencl: a loader that was there first: {row}")
    if os.listdir(temporary):
        sys.exit(f"left behind: {os.listdir(temporary)}")
    # Nothing but bad ones: named as well, and the backend is not opened.
    os.remove(f"{vendors}/good.icd")
    row = doctor(program, folder, dict(environment, KILN_FAULTY="crash"))["opencl"]
    if row["outcome"] != "crashed" or "a_bad.icd" not in row["why"]:
        sys.exit(f"opencl: nothing but bad ones: {row}")


def main():
    program, faulty, manifest = sys.argv[1:4]
    with tempfile.TemporaryDirectory(prefix="kiln-faulty-") as folder:
        check_opencl(program, faulty, manifest, folder)
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
