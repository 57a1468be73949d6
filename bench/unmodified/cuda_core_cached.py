"""cuda.core: five programs through a ProgramCacheResource, kiln's under `kiln exec`, else cuda.core's own in the home."""
import os

import numpy as np
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch, utils
import cuda.core as core

from clock import Clock

if os.environ.get("KILN_PYTHON"):
    from kiln.cuda_core import ProgramCache as Cache
else:
    def Cache():
        return utils.FileStreamProgramCache(os.path.join(os.environ["HOME"], "cuda-core"))

device = Device(0)
device.set_current()
stream = device.create_stream()
arch = "".join(str(i) for i in device.compute_capability)
clock = Clock()
with Cache() as cache:
    for k in range(5):
        program = Program(f'extern "C" __global__ void add{k}(int *x) {{ x[threadIdx.x] += {k + 1}; }}',
                          code_type="c++", options=ProgramOptions(std="c++17", arch=f"sm_{arch}"))
        kernel = program.compile("cubin", cache=cache).get_kernel(f"add{k}")
        memory = core.LegacyPinnedMemoryResource().allocate(4 * 32)
        view = np.from_dlpack(memory).view(np.int32)
        view[:] = 7
        launch(stream, LaunchConfig(grid=1, block=32), kernel, memory)
        stream.sync()
        clock.result(view.copy())
clock.end()
