#!/usr/bin/env python3
"""hiprtc.py KILN ROOT ROUNDS COMMAND: the processor time of a program that compiles with hipRTC and needs no GPU, each
way in turns: alone, with libamd_comgr's own cache empty and filled, under `kiln exec` with kiln's empty and filled, and
under KILN_DISABLE=1. ROOT is a tree of a later Debian (dpkg -x of the packages, with busybox-static), into which KILN's
checkout is mounted; what the command needs of this machine's libraries lies in ROOT/opt/bw. COMMAND is the shell's.
Run it in a mount namespace of its own: unshare -m python3 hiprtc.py ..."""
import os
import resource
import shutil
import statistics
import subprocess
import sys

KILN, ROOT, ROUNDS, COMMAND = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
CHECKOUT = os.path.realpath(f"{os.path.dirname(os.path.abspath(__file__))}/../..")


def mount():
    os.makedirs(ROOT + CHECKOUT, exist_ok=True)
    subprocess.run(["mount", "-t", "proc", "proc", f"{ROOT}/proc"], check=True)
    subprocess.run(["mount", "--rbind", CHECKOUT, ROOT + CHECKOUT], check=True)


def spent():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (usage.ru_utime + usage.ru_stime)


def run(before="", **variables):
    env = {"PATH": "/usr/sbin:/usr/bin", "HOME": "/tmp/bench", "AMD_COMGR_CACHE": "0", **variables}
    start = spent()
    subprocess.run(["chroot", ROOT, "/bin/busybox", "sh", "-c", f"cd /tmp; {before} {COMMAND}"], env=env, check=True,
                   stdout=subprocess.DEVNULL)
    return spent() - start


def main():
    mount()
    rows = {}
    own = {"AMD_COMGR_CACHE": "1", "AMD_COMGR_CACHE_DIR": "/tmp/bench-own"}
    kiln = f"/bin/busybox env LD_LIBRARY_PATH=/opt/bw {KILN} exec --"
    cache = {"KILN_CACHE_DIR": "/tmp/bench-kiln"}
    for _ in range(ROUNDS):
        for folder in ("bench-own", "bench-kiln"):
            shutil.rmtree(f"{ROOT}/tmp/{folder}", ignore_errors=True)
        for name, before, variables in (("alone", "", {}), ("own cold", "", own), ("own warm", "", own),
                                        ("kiln cold", kiln, cache), ("kiln warm", kiln, cache),
                                        ("disabled", kiln, {"KILN_DISABLE": "1"})):
            rows.setdefault(name, []).append(run(before, **variables))
    for name, times in rows.items():
        print(f"{name:10} {statistics.median(times):8.1f} ms ({min(times):.1f} to {max(times):.1f})")


main()
