#!/usr/bin/env python3
"""hiprtc_alone.py [COUNT]: the hipRTC in Debian's libamdhip64.so.5, COUNT compiles (6) that differ in a constant. It needs no GPU.

The functions are looked up in the whole process, as those of a program that is linked with the library: `kiln exec` serves such."""
import ctypes
import os
import sys

from clock import Clock

SOURCE = 'extern "C" __global__ void k(int *a) { a[threadIdx.x] = a[threadIdx.x] * %d + 1; }'
OPTIONS = ["--offload-arch=gfx90a", "-O3"]


def compile_one(library, source):
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    words = (ctypes.c_char_p * len(OPTIONS))(*[o.encode() for o in OPTIONS])
    if library.hiprtcCreateProgram(ctypes.byref(program), source.encode(), b"k.hip", 0, None, None) != 0:
        raise SystemExit("hiprtcCreateProgram failed")
    if library.hiprtcCompileProgram(program, len(OPTIONS), words) != 0:
        raise SystemExit("hiprtcCompileProgram failed")
    library.hiprtcGetCodeSize(program, ctypes.byref(size))
    code = ctypes.create_string_buffer(size.value)
    library.hiprtcGetCode(program, code)
    library.hiprtcDestroyProgram(ctypes.byref(program))
    return code.raw


def main():
    ctypes.CDLL(os.environ.get("HIPRTC", "libamdhip64.so.5"), ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL(None)
    clock = Clock()
    for i in range(int(sys.argv[1]) if len(sys.argv) > 1 else 6):
        clock.result(compile_one(library, SOURCE % (i + 2)))
    clock.end()


main()
