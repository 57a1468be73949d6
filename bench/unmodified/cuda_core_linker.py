"""cuda.core: PTX and LTO-IR of NVRTC's, linked by nvJitLink."""
from cuda.core import Device, Linker, LinkerOptions, Program, ProgramOptions

from clock import Clock

Device(0).set_current()
SOURCE = """extern "C" __global__ void heavy(float *x, int n)
{
    float a = x[threadIdx.x];
    for (int i = 0; i < n; i++)
        a = sinf(a) * expf(a) + tanf(a) + powf(a, 1.7f) + erff(a) + lgammaf(a);
    x[threadIdx.x] = a;
}
"""
clock = Clock()
ptx = Program(SOURCE, code_type="c++", options=ProgramOptions(arch="sm_90")).compile("ptx").code
text = ptx.decode() if isinstance(ptx, bytes) else ptx
clock.result(Program(text, code_type="ptx", options=ProgramOptions(arch="sm_90")).compile("cubin").code)
options = ProgramOptions(arch="sm_90", link_time_optimization=True)
bitcode = Program(SOURCE, code_type="c++", options=options).compile("ltoir")
options = LinkerOptions(arch="sm_90", link_time_optimization=True)
clock.result(Linker(bitcode, options=options).link("cubin").code)
clock.end()
