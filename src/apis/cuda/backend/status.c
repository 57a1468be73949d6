/* CUresult -> kiln_status, with the driver's own words. */
#include "apis/cuda/backend/instance.h"

static const char outside[] =
    "the kernel read or wrote outside its buffers: run it under compute-sanitizer";

#define R(result, name, status, fix) {result, KILN_E_##status, fix},
static const kn_gpu_result results[] = {
#include "apis/cuda/backend/status.def"
};
#undef R

kiln_status kn_cuda_fail(const kn_cuda *cuda, CUresult result, const char *what, kiln_diag *diag)
{
    const char *name = NULL;
    const char *text = NULL;
    if (cuda->driver.cuGetErrorName == NULL ||
        cuda->driver.cuGetErrorName(result, &name) != CUDA_SUCCESS || name == NULL) {
        name = "unknown CUresult";
    }
    if (cuda->driver.cuGetErrorString == NULL ||
        cuda->driver.cuGetErrorString(result, &text) != CUDA_SUCCESS || text == NULL) {
        text = "no description";
    }
    return kn_gpu_fail(results, sizeof(results) / sizeof(results[0]), result, what, name, text,
                       diag);
}
