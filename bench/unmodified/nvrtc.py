"""nvrtc.py plain|fp16|cub|cupy [COUNT]: NVRTC alone, COUNT compiles (6) that differ in a constant. It needs no GPU.

`cupy` sends what CuPy sends for an element-wise kernel; CUPY_INCLUDE names a directory with CuPy's headers."""
import ctypes
import os
import sys
from pathlib import Path

from clock import Clock

CUDA = Path(os.environ.get("CUDA_PATH", "/usr/local/cuda"))
SOURCES = {
    "plain": 'extern "C" __global__ void k(int *a) { a[threadIdx.x] = a[threadIdx.x] * %d + 1; }',
    "fp16": """#include <cuda_fp16.h>
extern "C" __global__ void k(__half *a) { a[threadIdx.x] = __hfma(a[threadIdx.x], __float2half(%d), a[0]); }""",
    "cub": """#include <cub/block/block_reduce.cuh>
extern "C" __global__ void k(int *a) {
    using Reduce = cub::BlockReduce<int, 128>;
    __shared__ typename Reduce::TempStorage room;
    const int sum = Reduce(room).Sum(a[threadIdx.x] * %d);
    if (threadIdx.x == 0) a[0] = sum;
}""",
    "cupy": """#include <cupy/complex.cuh>
#include <cupy/carray.cuh>
#include <cupy/atomics.cuh>
#include <cupy/math_constants.h>
typedef int type_in0_raw; typedef int type_out0_raw;
extern "C" __global__ void k(const CArray<int, 1, 1, 1> in0, CArray<int, 1, 1, 1> out0, CIndexer<1, 1> ind) {
    CUPY_FOR(i, ind.size()) { ind.set(i); out0[ind.get()] = in0[ind.get()] * %d; }
}""",
}


def directories(kind):
    named = [os.environ["CUPY_INCLUDE"]] if kind == "cupy" else []
    return [str(CUDA / "include/cccl"), *named, str(CUDA / "include")] if kind != "plain" else []


def compile_one(library, source, options):
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    words = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
    if library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"k.cu", 0, None, None) != 0:
        raise SystemExit("nvrtcCreateProgram failed")
    if library.nvrtcCompileProgram(program, len(options), words) != 0:
        library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        library.nvrtcGetProgramLog(program, log)
        raise SystemExit(log.value.decode()[-2000:])
    library.nvrtcGetCUBINSize(program, ctypes.byref(size))
    code = ctypes.create_string_buffer(size.value)
    library.nvrtcGetCUBIN(program, code)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return code.raw


def main():
    kind = sys.argv[1]
    library = ctypes.CDLL(os.environ.get("NVRTC", "libnvrtc.so.13"))
    options = ["-arch=sm_90", "--std=c++17", "-ftz=true", "--device-as-default-execution-space"]
    options = [o for o in options if kind in ("cub", "cupy") or "space" not in o]
    options += [f"-I{directory}" for directory in directories(kind)]
    clock = Clock()
    for i in range(int(sys.argv[2]) if len(sys.argv) > 2 else 6):
        clock.result(compile_one(library, SOURCES[kind] % (i + 2), options))
    clock.end()


main()
