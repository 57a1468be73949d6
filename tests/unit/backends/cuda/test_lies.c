/* libcuda and NVRTC that lie. */
#include "unit/backends/compiled_lies.h"

static const compiled_lies what = {
    .backend = "cuda",
    .language = KILN_LANG_CUDA,
    .compiler = "nvrtc",
    .lies = {{"cuDeviceGetCount", "value"},
             {"cuDeviceGetName", "value"},
             {"cuDeviceTotalMem", "value"},
             {"cuDeviceGetAttribute", "value"},
             {"cuFuncGetAttribute", "value"},
             {"cuFuncGetParamInfo", "value"},
             {"cuLinkComplete", "length"},
             {"cuLinkComplete", "value"},
             {"nvrtcGetLoweredName", "value"},
             {"nvrtcGetProgramLogSize", "length"},
             {"nvrtcGetCUBINSize", "length"}},
};

int main(int argc, char **argv)
{
    return compiled_lies_run(&what, argc, argv);
}
