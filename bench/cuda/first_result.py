#!/usr/bin/env python3
"""first_result.py cupy|cuda.core|triton KERNEL: one sample in a fresh process, from a ready context to the
first result on the host, in milliseconds on standard output. Caches lie where the environment says
(CUPY_CACHE_DIR; CORE_CACHE_DIR; TRITON_CACHE_DIR). The answer is checked. Triton has a language of
its own: it takes part in the trivial kernel alone, written again below. Include directories are given only to
the kernels that include something. cuda.core then makes no key unless its caller brings a digest of
what the headers hold; it gets the toolkit's version, as from somebody who trusts what is installed."""
import hashlib
import os
import sys
import time
from pathlib import Path

WAY, KERNEL = sys.argv[1], Path(sys.argv[2])
TEXT = KERNEL.read_text()
THREADS = 32 if "mma" in KERNEL.name else 64 if "sort" in KERNEL.name else 256
INCLUDES = [part for part in os.environ.get("TOOLKIT_INCLUDES", "").split(":")
            if part and "#include" in TEXT]


def numbers():
    if "mma" in KERNEL.name:
        return [1.0] * 256
    return [float((i * 7919 + 13) % 1009) for i in range(256)]


def check(out):
    data = numbers()
    if "mma" in KERNEL.name:
        wanted = [16.0] * 256
    else:
        wanted = sorted(data) if "sort" in KERNEL.name else [2 * x for x in data]
    if [float(x) for x in out] != wanted:
        sys.exit("wrong result")


def cupy_way():
    import cupy
    import numpy
    data = numpy.array(numbers(), dtype=numpy.float32)
    cupy.cuda.Device(0).use()
    cupy.zeros(1, dtype=numpy.float32)
    start = time.perf_counter()
    options = tuple(f"-I{folder}" for folder in INCLUDES)
    module = cupy.RawModule(code=TEXT, options=options, backend="nvrtc")
    function = module.get_function("run")
    given = cupy.asarray(data)
    out = cupy.empty(256, dtype=numpy.float32)
    function((1,), (THREADS,), (given, out))
    result = cupy.asnumpy(out)
    took = time.perf_counter() - start
    check(result)
    return took


def toolkit_version():
    """The line of the toolkit's headers that says which they are: no other line of them is looked at."""
    for name, start in (("cuda.h", "#define CUDA_VERSION "), ("cuda_runtime_api.h", "#define CUDART_VERSION ")):
        for folder in INCLUDES:
            try:
                with open(Path(folder, name), encoding="utf-8", errors="replace") as header:
                    for line in header:
                        if line.startswith(start):
                            return line.encode()
            except OSError:
                continue
    sys.exit("no version in the toolkit's headers")


def core_way():
    import ctypes
    from cuda.bindings import driver
    from cuda.core import Device, LaunchConfig, ObjectCode, Program, ProgramOptions, launch
    from cuda.core.utils import FileStreamProgramCache, make_program_cache_key
    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    host = (ctypes.c_float * 256)(*numbers())
    out = (ctypes.c_float * 256)()
    driver.cuMemAlloc(4)
    start = time.perf_counter()
    options = ProgramOptions(arch=f"sm_{device.arch}", include_path=INCLUDES or None)
    digest = hashlib.sha256(toolkit_version()).digest() if INCLUDES else None
    key = make_program_cache_key(code=TEXT, code_type="c++", options=options, target_type="cubin",
                                 extra_digest=digest)
    cache = FileStreamProgramCache(os.environ["CORE_CACHE_DIR"])
    binary = cache.get(key)
    if binary is not None:
        code = ObjectCode.from_cubin(binary)
    else:
        code = Program(TEXT, "c++", options).compile("cubin")
        cache[key] = code
    kernel = code.get_kernel("run")
    given = driver.cuMemAlloc(1024)[1]
    made = driver.cuMemAlloc(1024)[1]
    # On the launch's own stream, which waits for no other.
    driver.cuMemcpyHtoDAsync(given, ctypes.addressof(host), 1024, stream.handle)
    launch(stream, LaunchConfig(grid=1, block=THREADS), kernel, int(given), int(made))
    driver.cuMemcpyDtoHAsync(ctypes.addressof(out), made, 1024, stream.handle)
    stream.sync()
    took = time.perf_counter() - start
    check(list(out))
    return took


def triton_way():
    if "trivial" not in KERNEL.name:
        sys.exit("not in Triton's language")
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def twice(given, made, count: tl.constexpr):
        at = tl.arange(0, count)
        tl.store(made + at, 2 * tl.load(given + at))

    data = torch.tensor(numbers(), dtype=torch.float32)
    torch.zeros(1, device="cuda").cpu()
    start = time.perf_counter()
    given = data.cuda()
    made = torch.empty(256, dtype=torch.float32, device="cuda")
    twice[(1,)](given, made, 256)
    result = made.cpu()
    took = time.perf_counter() - start
    check(result.tolist())
    return took


WAYS = {"cupy": cupy_way, "cuda.core": core_way, "triton": triton_way}
print(f"{WAYS[WAY]() * 1000:.4f}")
