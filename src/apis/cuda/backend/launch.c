/* Launches with attributes, where the driver has them (11.8). */
#include <string.h>

#include "apis/cuda/backend/instance.h"
#include "base/diag.h"

kiln_status kn_cuda_launch_with(const kn_gpu_device *device, const kiln_sys_launch *launch,
                                const kn_gpu_function *function, const kn_gpu_shape *shape,
                                void *stream, void **params, kiln_diag *diag)
{
    const kn_cuda *cuda = ((const kn_cuda_device *)device)->cuda;
    CUlaunchAttribute attributes[2];
    CUlaunchConfig config = {.gridDimX = shape->grid[0],
                             .gridDimY = shape->grid[1],
                             .gridDimZ = shape->grid[2],
                             .blockDimX = shape->block[0],
                             .blockDimY = shape->block[1],
                             .blockDimZ = shape->block[2],
                             .sharedMemBytes = shape->shared_bytes,
                             .hStream = (CUstream)stream,
                             .attrs = attributes};
    if (cuda->driver.cuLaunchKernelEx == NULL) {
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, "install a driver for CUDA 11.8 or newer",
                             launch->entry,
                             "this driver has no launches with cooperation or clusters");
    }
    memset(attributes, 0, sizeof(attributes));
    if (launch->cooperative) {
        attributes[config.numAttrs].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        attributes[config.numAttrs++].value.cooperative = 1;
    }
    if (launch->cluster[0] != 0) {
        attributes[config.numAttrs].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        attributes[config.numAttrs].value.cluster.x = launch->cluster[0];
        attributes[config.numAttrs].value.cluster.y = launch->cluster[1];
        attributes[config.numAttrs++].value.cluster.z = launch->cluster[2];
    }
    CUresult result =
        cuda->driver.cuLaunchKernelEx(&config, (CUfunction)function->function, params, NULL);
    return result == CUDA_SUCCESS ? KILN_OK : kn_cuda_fail(cuda, result, "cuLaunchKernelEx", diag);
}
