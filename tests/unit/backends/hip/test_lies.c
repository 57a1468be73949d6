/* libamdhip64 and hipRTC that lie. */
#include "unit/backends/compiled_lies.h"

static const compiled_lies what = {
    .backend = "hip",
    .language = KILN_LANG_HIP,
    .compiler = "hiprtc",
    .lies = {{"hipGetDeviceCount", "value"},
             {"hipRuntimeGetVersion", "value"},
             {"hipGetDeviceProperties", "value"},
             {"hipDeviceGetName", "value"},
             {"hipDeviceTotalMem", "value"},
             {"hipDeviceGetAttribute", "value"},
             {"hipFuncGetAttribute", "value"},
             {"hipEventElapsedTime", "value"},
             {"hipGetDevice", "value"},
             {"hiprtcGetLoweredName", "value"},
             {"hiprtcGetProgramLogSize", "length"},
             {"hiprtcGetCodeSize", "length"}},
};

int main(int argc, char **argv)
{
    return compiled_lies_run(&what, argc, argv);
}
