"""Numba-CUDA: a kernel, and a device function in CUDA C++ that it links (through NVRTC)."""
import os
import tempfile

import numpy as np
from numba import cuda

from clock import Clock

cuda.current_context()
clock = Clock()


@cuda.jit(cache=True)  # what links a file cannot be kept by Numba
def double(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= 2


x = np.arange(1024, dtype=np.float32)
d = cuda.to_device(x)
double[4, 256](d)
clock.result(d.copy_to_host())
with tempfile.TemporaryDirectory() as directory:
    path = os.path.join(directory, "thrice.cu")
    with open(path, "w", encoding="utf-8") as file:
        file.write('extern "C" __device__ int thrice(float *out, float x)'
                   " { *out = 3 * x; return 0; }")
    thrice = cuda.declare_device("thrice", "float32(float32)", link=path)

    @cuda.jit
    def triple(x):
        i = cuda.grid(1)
        if i < x.size:
            x[i] = thrice(x[i])

    triple[4, 256](d)
    clock.result(d.copy_to_host())
clock.end()
