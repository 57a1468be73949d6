/* An opened device: its primary context, made current for the length of a call; and what CUDA does
 * in ways of its own where CUDA and HIP are alike otherwise. */
#include <limits.h>
#include <stdlib.h>

#include "apis/cuda/backend/cubin.h"
#include "apis/cuda/backend/instance.h"
#include "base/diag.h"

kiln_status kn_cuda_enter(const kn_gpu_device *opaque, int *out_before, kiln_diag *diag)
{
    const kn_cuda_device *device = (const kn_cuda_device *)opaque;
    (void)out_before; /* the driver keeps a stack of contexts */
    if (kn_fork_noticed(&device->cuda->guard)) {
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE, "create the runtime in the child", "cuda",
                             "CUDA was initialised before fork() and cannot be used in the child");
    }
    CUresult result = device->cuda->driver.cuCtxPushCurrent_v2(device->context);
    return result == CUDA_SUCCESS ? KILN_OK
                                  : kn_cuda_fail(device->cuda, result, "cuCtxPushCurrent", diag);
}

void kn_cuda_leave(const kn_gpu_device *device, int before)
{
    CUcontext popped;
    (void)before;
    (void)((const kn_cuda_device *)device)->cuda->driver.cuCtxPopCurrent_v2(&popped);
}

static kiln_status fail_on_device(const kn_gpu_device *device, int result, const char *what,
                                  kiln_diag *diag)
{
    return kn_cuda_fail(((const kn_cuda_device *)device)->cuda, result, what, diag);
}

/* Columns of 32-bit words. */
static int fill_words(const kn_gpu_device *device, uint64_t to, const uint32_t *words,
                      size_t word_count, size_t count, void *stream)
{
    const kn_cuda_driver *driver = &((const kn_cuda_device *)device)->cuda->driver;
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < word_count && result == CUDA_SUCCESS; i++) {
        result = driver->cuMemsetD2D32Async(to + 4 * i, 4 * word_count, words[i], 1, count,
                                            (CUstream)stream);
    }
    return result;
}

#define G(row, called, symbol) .row = (called),
static const kn_gpu_vendor vendor = {
    .label = "CUDA",
    .calls =
        {
#include "apis/cuda/backend/gpu.def"
        },
    .grid_max = {INT_MAX, 65535, 65535},
    .items_max = UINT64_MAX,
    .block_max_z = 64,
    .not_found = CUDA_ERROR_NOT_FOUND,
    .enter = kn_cuda_enter,
    .leave = kn_cuda_leave,
    .fail = fail_on_device,
    .fill_words = fill_words,
    .load = kn_cuda_load,
    .unload = kn_cuda_unload,
    .find = kn_cuda_find,
    .allow_shared = kn_cuda_allow_shared,
    .launch_with = kn_cuda_launch_with,
    .image_is_whole = kn_cuda_image_is_whole,
};
#undef G

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
    device->base = (kn_gpu_device){.vendor = &vendor,
                                   .driver = &cuda->driver.gpu,
                                   .host = cuda->host,
                                   .ordinal = cuda->devices[index],
                                   .device_memory = CU_MEMORYTYPE_DEVICE};
    CUresult result = cuda->driver.cuDevicePrimaryCtxRetain(&device->context, device->base.ordinal);
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
    if (!kn_fork_noticed(&device->cuda->guard)) {
        (void)device->cuda->driver.cuDevicePrimaryCtxRelease_v2(device->base.ordinal);
    }
    free(device);
}
