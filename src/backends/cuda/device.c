/* An opened device: its primary context, made current for the length of a call. */
#include <stdlib.h>

#include "backends/cuda/instance.h"
#include "base/diag.h"
#include "sys/process.h"

kiln_status kn_cuda_enter(const kn_cuda_device *device, kiln_diag *diag)
{
    if (device->cuda->process != kn_process_id()) {
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE, "create the runtime in the child", "cuda",
                             "CUDA was initialised before fork() and cannot be used in the child");
    }
    CUresult result = device->cuda->driver.cuCtxPushCurrent_v2(device->context);
    return result == CUDA_SUCCESS ? KILN_OK
                                  : kn_cuda_fail(device->cuda, result, "cuCtxPushCurrent", diag);
}

void kn_cuda_leave(const kn_cuda_device *device)
{
    CUcontext popped;
    (void)device->cuda->driver.cuCtxPopCurrent_v2(&popped);
}

kiln_status kn_cuda_device_open(void *instance, uint32_t index, void **out_device, kiln_diag *diag)
{
    kn_cuda *cuda = (kn_cuda *)instance;
    *out_device = NULL;
    if (index >= (uint32_t)cuda->device_count) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, "cuda", "there is no device %u", index);
    }
    kn_cuda_device *device = (kn_cuda_device *)calloc(1, sizeof(*device));
    if (device == NULL) {
        return kn_no_memory(diag, "cuda");
    }
    device->cuda = cuda;
    device->device = cuda->devices[index];
    CUresult result = cuda->driver.cuDevicePrimaryCtxRetain(&device->context, device->device);
    if (result != CUDA_SUCCESS) {
        free(device);
        return kn_cuda_fail(cuda, result, "cuDevicePrimaryCtxRetain", diag);
    }
    *out_device = device;
    return KILN_OK;
}

void kn_cuda_device_close(void *opaque)
{
    kn_cuda_device *device = (kn_cuda_device *)opaque;
    if (device == NULL) {
        return;
    }
    if (device->cuda->process == kn_process_id()) {
        (void)device->cuda->driver.cuDevicePrimaryCtxRelease_v2(device->device);
    }
    free(device);
}
