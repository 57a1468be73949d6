#!/usr/bin/env python3
"""first_result_pyopencl.py SOURCE: one sample of bench/compare.py through pyopencl, from a ready queue to
the first result on the host: "build first" in microseconds. Caches lie where the environment says."""
import sys
import time
import warnings
from pathlib import Path

import numpy
import pyopencl as cl

SIZE, GROUP = 64, 8
warnings.simplefilter("ignore")

text = Path(sys.argv[1]).read_text()
device = cl.get_platforms()[0].get_devices()[0]
context = cl.Context([device])
queue = cl.CommandQueue(context)
a = numpy.ones((SIZE, SIZE), dtype=numpy.float32)
c = numpy.empty_like(a)

start = time.perf_counter()
program = cl.Program(context, text).build()
built = time.perf_counter()
flags = cl.mem_flags
x = cl.Buffer(context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=a)
y = cl.Buffer(context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=a)
z = cl.Buffer(context, flags.WRITE_ONLY, c.nbytes)
program.matmul(queue, (SIZE, SIZE), (GROUP, GROUP), x, y, z, numpy.int32(SIZE))
cl.enqueue_copy(queue, c, z)
took = time.perf_counter() - start
if not (c == SIZE).all():
    sys.exit("wrong result")
print(f"{(built - start) * 1e6:.3f} {took * 1e6:.3f}")
