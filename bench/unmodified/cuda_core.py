"""cuda.core: five trivial programs."""
import numpy as np
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch
import cuda.core as core

from clock import Clock

device = Device(0)
device.set_current()
stream = device.create_stream()
clock = Clock()
arch = "".join(str(i) for i in device.compute_capability)
for k in range(5):
    program = Program(f'extern "C" __global__ void add{k}(int *x) {{ x[threadIdx.x] += {k + 1}; }}',
                      code_type="c++", options=ProgramOptions(std="c++17", arch=f"sm_{arch}"))
    kernel = program.compile("cubin", name_expressions=()).get_kernel(f"add{k}")
    memory = core.LegacyPinnedMemoryResource().allocate(4 * 32)
    view = np.from_dlpack(memory).view(np.int32)
    view[:] = 7
    launch(stream, LaunchConfig(grid=1, block=32), kernel, memory)
    stream.sync()
    clock.result(view.copy())
clock.end()
