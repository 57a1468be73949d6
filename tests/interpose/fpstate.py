#!/usr/bin/env python3
"""fpstate.py KILN LIBEXEC NVRTC: a program that compiles in another floating-point state gets what NVRTC gives it there, and
no other program does. NVRTC folds constants with the caller's rounding."""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

KILN, LIBEXEC, NVRTC = sys.argv[1:4]
HOST = """
import ctypes, ctypes.util, hashlib, os, sys
libm = ctypes.CDLL(ctypes.util.find_library("m"))
nvrtc = ctypes.CDLL("libnvrtc.so.13")
modes = {"nearest": 0, "upward": {"x86_64": 0x800, "aarch64": 0x400000}[os.uname().machine]}
for mode in sys.argv[1:]:
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    text = b'extern "C" __global__ void k(float *a) { *a = sqrtf(2.0f) + 0.1f * 0.7f; }'
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, b"k.cu", 0, None, None) == 0
    libm.fesetround(modes[mode])
    option = (ctypes.c_char_p * 1)(b"--gpu-architecture=sm_90")
    code = nvrtc.nvrtcCompileProgram(program, 1, option)
    assert libm.fegetround() == modes[mode]
    libm.fesetround(0)
    assert code == 0, code
    assert nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size)) == 0
    data = ctypes.create_string_buffer(size.value)
    assert nvrtc.nvrtcGetPTX(program, data) == 0
    print(mode, hashlib.sha256(data.raw).hexdigest())
"""


def run(root, cache, *modes, kiln=True):
    env = {k: v for k, v in os.environ.items() if not k.startswith("KILN_")}
    env.update(KILN_CACHE_DIR=str(root / cache), KILN_LIBEXEC=LIBEXEC, KILN_NVRTC_LIBRARY=NVRTC,
               LD_LIBRARY_PATH=os.path.dirname(NVRTC))
    report = root / "report.json"
    command = [KILN, "exec", "--report", str(report), "--"] if kiln else []
    done = subprocess.run([*command, sys.executable, "-c", HOST, *modes], env=env, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout, json.loads(report.read_text()) if kiln else None


def main():
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        alone = {mode: run(root, "none", mode, kiln=False)[0] for mode in ("nearest", "upward")}
        for turn in range(2):
            said, report = run(root, "cache", "upward", "nearest", "upward")
            assert said == alone["upward"] + alone["nearest"] + alone["upward"], (turn, said, alone)
            assert report["bypassed"] == 2, report
            assert (report["hits"], report["compiled"]) == ((0, 1) if turn == 0 else (1, 0)), report
            assert "floating-point" in json.dumps(report), report
        print(f"ok: NVRTC rounds {'as its caller does' if alone['upward'].split()[1] != alone['nearest'].split()[1] else 'in one way'}")


main()
