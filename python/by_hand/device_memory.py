#!/usr/bin/env python3
"""device_memory.py: memory shared with PyTorch, CuPy, JAX and Numba on a real GPU, each where it is installed.

Not part of the suite, which has a fake driver (python/tests/test_dlpack.py). Each check says what became of it."""
import ctypes
import gc
import statistics
import sys
import time
import traceback

import kiln

KERNEL = """
extern "C" __global__ void scale(float *x, float by, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= by;
}
extern "C" __global__ void slow(float *x, int n, long long cycles) {
    long long start = clock64();
    while (clock64() - start < cycles) { }
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += 1;
}
"""
N = 1 << 20
SLOW = ctypes.c_longlong(20_000_000)  # some 10 ms: what is not ordered is seen


class Case:
    def __init__(self):
        self.runtime = kiln.Runtime(backend="cuda", strict=True)
        self.device = self.runtime.select()
        self.program = self.device.build(kiln.Source("cuda", KERNEL))
        self.queue = self.device.queue()

    def scale(self, x, by, queue=None):
        (queue or self.queue).launch(self.program, "scale", N, x, ctypes.c_float(by), ctypes.c_int(N), local=256)

    def slow(self, x, queue=None):
        (queue or self.queue).launch(self.program, "slow", N, x, ctypes.c_int(N), SLOW, local=256)


def torch_arguments(case):
    import torch

    x = torch.ones(N, device="cuda")
    for _ in range(20):  # each after what the other did, with nobody waiting
        x.add_(1)
        case.slow(x)
        x.mul_(2)
        case.scale(x, 0.5)
        x.sub_(2)
    assert x.eq(1).all().item(), x[:4]
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        y = torch.ones(N, device="cuda")
        for _ in range(20):
            case.slow(y)
            y.sub_(1)
        assert y.eq(1).all().item()
        queue = case.device.queue(side)
        assert queue.stream == side.cuda_stream
        for _ in range(20):
            case.slow(y, queue)
            y.sub_(1)
        assert y.eq(1).all().item()
    return "20 rounds on the default stream, on a side stream, and in a queue of that stream"


def torch_export(case):
    import torch

    total = case.device.memory_bytes
    for turn in range(64):
        buffer = case.device.buffer(4 * N, "<f4", (1024, N // 1024))
        case.queue.fill(buffer, b"\0\0\0\0")
        case.slow(buffer)
        seen = torch.from_dlpack(buffer)  # not waited for
        assert seen.shape == (1024, N // 1024) and seen.dtype is torch.float32 and seen.data_ptr() == buffer.address
        assert seen.eq(1).all().item()
        del buffer
        assert seen.sum().item() == N
        del seen
    gc.collect()
    from kiln import _dlpack

    _dlpack.sweep()
    assert not _dlpack._records and total
    other = torch.as_tensor(case.device.buffer(4 * N, "<f4"), device="cuda")  # __cuda_array_interface__
    assert other.shape == (N,)
    return f"{turn + 1} buffers of 4 MiB, all given back"


def torch_refused(case):
    import torch

    said = []
    for wrong in (torch.ones(4), torch.ones(8, 8, device="cuda")[:, ::2], torch.ones(4, device="cuda", requires_grad=True),
                  torch.ones(0, device="cuda")):
        try:
            case.device.wrap(wrong)
        except kiln.InvalidError as error:
            said.append(error.why.splitlines()[0][:48])
        else:
            raise AssertionError(wrong)
    return "; ".join(said)


def cupy_both(case):
    import cupy

    x = cupy.ones(N, cupy.float32)
    for _ in range(20):
        x += 1
        case.slow(x)
        x -= 1
        case.scale(x, 0.5)
        x *= 2
        x -= 1
    assert (x == 1).all()
    with cupy.cuda.Stream(non_blocking=True) as side:
        y = cupy.ones(N, cupy.float32)
        for _ in range(20):
            case.slow(y)
            y -= 1
        assert (y == 1).all()
        queue = case.device.queue(side)
        case.slow(y, queue)
        assert (y == 2).all()
    buffer = case.device.buffer(4 * N, "<f4")
    case.queue.fill(buffer, b"\0\0\0\0")
    case.slow(buffer)
    seen, other = cupy.asarray(buffer), cupy.from_dlpack(buffer)
    assert (seen == 1).all() and (other == 1).all() and seen.data.ptr == other.data.ptr == buffer.address
    return "arguments on two streams, asarray and from_dlpack"


def jax_import(case):
    import jax.numpy as jnp

    x = jnp.ones(N, jnp.float32)
    case.scale(x, 3)  # JAX takes its arrays for constant: a test of the address alone
    case.queue.finish()
    out = (ctypes.c_float * N)()
    case.queue.read(case.device.wrap(x), out)
    assert out[5] == 3 and out[N - 1] == 3
    return "an array as an argument"


def numba_both(case):
    from numba import cuda
    import numpy

    x = cuda.to_device(numpy.ones(N, numpy.float32))
    case.slow(x)
    assert (x.copy_to_host() == 2).all()
    buffer = case.device.buffer(4 * N, "<f4")
    case.queue.fill(buffer, b"\0\0\0\0")
    case.slow(buffer)
    assert (cuda.as_cuda_array(buffer).copy_to_host() == 1).all()
    return "an argument, and as_cuda_array"


def costs(case):
    import torch

    x, own = torch.ones(256, device="cuda"), case.device.buffer(1024)
    guest = case.device.queue(torch.cuda.current_stream())
    told = []
    for name, queue, array in (("a kiln buffer", case.queue, own), ("a wrapped tensor", case.queue, case.device.wrap(x)),
                               ("a tensor", case.queue, x), ("a tensor, in its stream", guest, x)):
        times = []
        for _ in range(300):
            start = time.perf_counter()
            queue.launch(case.program, "scale", 256, array, ctypes.c_float(1), ctypes.c_int(256), local=256)
            times.append(time.perf_counter() - start)
        queue.finish()
        told.append(f"{name} {statistics.median(times) * 1e6:.1f}")
    return "us a launch: " + ", ".join(told)


def main():
    case = Case()
    failed = False
    for check in (torch_arguments, torch_export, torch_refused, cupy_both, jax_import, numba_both, costs):
        try:
            print(f"{check.__name__:18} ok      {check(case)}", flush=True)
        except ImportError as error:
            print(f"{check.__name__:18} absent  {error}", flush=True)
        except Exception:
            failed = True
            print(f"{check.__name__:18} FAILED  {traceback.format_exc().strip()}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
