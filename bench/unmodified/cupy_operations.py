"""CuPy: eight operations, CUB-heavy ones too."""
import cupy as cp
import numpy as np

from clock import Clock

cp.cuda.runtime.free(0)
clock = Clock()
x = cp.asarray(np.random.default_rng(1).integers(0, 1000, 1 << 16), dtype=cp.int32)
clock.result(cp.asnumpy(x.sum()))
clock.result(cp.asnumpy(cp.sort(x)))
clock.result(cp.asnumpy(cp.cumsum(x)))
clock.result(cp.asnumpy(cp.unique(x)))
clock.result(cp.asnumpy(cp.argsort(x, kind="stable")))
raw = cp.RawKernel(r"""
#include <cuda_fp16.h>
extern "C" __global__ void twice(const int *in, int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = __half2int_rn(__int2half_rn(in[i])) * 2;
}""", "twice", options=("--std=c++17",))
y = cp.empty_like(x)
raw((x.size // 256,), (256,), (x, y, np.int32(x.size)))
clock.result(cp.asnumpy(y))
mix = cp.ElementwiseKernel("int32 a, int32 b", "int32 c", "c = a * 3 + b", "mix")
clock.result(cp.asnumpy(mix(x, y)))
largest = cp.ReductionKernel("int32 a", "int32 m", "a", "max(a, b)", "m = a", "0", "largest")
clock.result(cp.asnumpy(largest(x)))
clock.end()
