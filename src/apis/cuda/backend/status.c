/* CUresult -> kiln_status, with the driver's own words. */
#include "apis/cuda/backend/instance.h"

static kiln_status status_of(CUresult result)
{
    switch (result) {
    case CUDA_SUCCESS:
        return KILN_OK;
    case CUDA_ERROR_OUT_OF_MEMORY:
        return KILN_E_NOMEM;
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_NOT_FOUND:
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
    case CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE:
    case CUDA_ERROR_INVALID_CLUSTER_SIZE:
        return KILN_E_INVALID;
    case CUDA_ERROR_NOT_SUPPORTED:
        return KILN_E_UNSUPPORTED;
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_INVALID_SOURCE:
        return KILN_E_REJECTED;
    case CUDA_ERROR_NOT_INITIALIZED:
    case CUDA_ERROR_STUB_LIBRARY:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_INVALID_DEVICE:
    case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
    case CUDA_ERROR_JIT_COMPILATION_DISABLED:
    case CUDA_ERROR_SYSTEM_NOT_READY:
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
    case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
        return KILN_E_UNAVAILABLE;
    /* After each of these no call in the context works any more. */
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
        return KILN_E_DEVICE_LOST;
    default:
        return KILN_E_INTERNAL;
    }
}

static const char *advice_for(CUresult result)
{
    switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
        return "free device memory, or use smaller buffers";
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
        return "the driver was upgraded under the running kernel module: reboot or reload it";
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
        return "the toolkit is newer than the driver: upgrade the driver, or use an older toolkit";
    case CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE:
        return "use fewer or smaller groups: all of them must fit on the device at once";
    case CUDA_ERROR_INVALID_CLUSTER_SIZE:
        return "use clusters of at most 8 groups, a divisor of the grid in each dimension";
    case CUDA_ERROR_ASSERT:
        return "an assert in the kernel failed; its line is on the standard output";
    case CUDA_ERROR_MISALIGNED_ADDRESS:
        return "the kernel used an address that is not a multiple of its type's size: run it under "
               "compute-sanitizer";
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_LAUNCH_FAILED:
        return "the kernel read or wrote outside its buffers: run it under compute-sanitizer";
    case CUDA_ERROR_NOT_INITIALIZED:
        return "CUDA does not survive fork(): create the runtime in the child";
    default:
        return NULL;
    }
}

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
    kiln_status status = kiln_diag_set(diag, status_of(result), advice_for(result), what,
                                       "%s (%d): %s", name, result, text);
    kiln_diag_set_vendor_code(diag, result);
    return status;
}
