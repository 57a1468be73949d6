#!/usr/bin/env python3
"""test_same_path.py KILN FAKES: same_path.py over the fake NVRTC, and that it sees each kind of difference."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

KILN, FAKES = sys.argv[1:3]
HERE = Path(__file__).resolve().parent
# What the program does under kiln alone, and the part in which that must be seen.
CHEATS = {"skips": "NVRTC (encrypted)", "options": "NVRTC (encrypted)", "warns": "standard error", "result": "results",
          "fails": "exit status"}


def start(toolkit, tracers, **more):
    library = f"{FAKES}/{toolkit}/lib64"
    env = {k: v for k, v in os.environ.items() if not k.startswith("KILN_")}
    env.update(KILN_NVRTC_LIBRARY=f"{library}/libnvrtc.so.13", LD_LIBRARY_PATH=library, **more)
    return subprocess.run([sys.executable, str(HERE / "same_path.py"), "--kiln", KILN, "--tracers", str(tracers), "--alone", "2",
                           str(HERE / "fake_calls.py")], env=env, capture_output=True, text=True, timeout=250, check=False)


def main():
    with tempfile.TemporaryDirectory() as root:
        tracers = Path(root) / "tracers"
        subprocess.run([sys.executable, str(HERE / "same_path.py"), "--build-tracers", str(tracers)], check=True)
        for toolkit, more, words in (
                ("toolkit", {}, ("3 NVRTC calls, 2 encrypted", "cold {'compiled': 2, 'bypassed': 1, 'failed': 1}",
                                 "warm {'hits': 2, 'bypassed': 1, 'failed': 1}")),
                ("toolkit_inert", {"SAME_PATH_STATUS": "3"}, ("fails alone with 3, and in the same way",))):
            done = start(toolkit, tracers, **more)
            if done.returncode != 0 or any(word not in done.stdout for word in (*words, "every path is the same")):
                sys.exit(f"{toolkit}: {done.stdout}{done.stderr}")
        for cheat, part in CHEATS.items():
            done = start("toolkit_inert", tracers, SAME_PATH_CHEAT=cheat)
            if done.returncode != 1 or not all(f"        {way}: {part}: " in done.stdout for way in ("cold", "warm")):
                sys.exit(f"{cheat} is not seen: {done.stdout}{done.stderr}")
    print(f"ok: the same path, and {len(CHEATS)} kinds of difference are seen")


main()
