/* A small libamdhip64: fakecuda.c's driver under HIP's names and with HIP's ways: a current device
 * in the place of contexts, a struct of properties, code objects that are for one processor.
 * Variants by definition:
 *   FAKE_HIP_INIT=n       hipInit gives n (100: no device)
 *   FAKE_HIP_FIVE         as ROCm 5.2: the older properties and kinds of memory, no UUIDs, no
 *                         cooperative launches; hipRTC is in the same library
 *   FAKE_WITHOUT_LAUNCH   hipModuleLaunchKernel is missing
 *
 * $FAKEHIP_LOG=path gets a line for each cooperative launch and for hipSetDevice. What fakecuda.c
 * reads from the environment works here, too. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "support/fakecuda/fakecuda.h"
#include "support/lies.h"

#define HIP __attribute__((visibility("default")))

#ifndef FAKE_HIP_INIT
#define FAKE_HIP_INIT 0
#endif

enum { INVALID_KERNEL_FILE = 218, INVALID_DEVICE = 101, DEVICES = 2 };

static const struct {
    const char *arch;
    uint32_t mach;
} devices[DEVICES] = {{"gfx90a:sramecc+:xnack-", 0x3f}, {"gfx1030", 0x36}};

static _Thread_local int current;

/* Of the driver below, besides the calls that are handed on. */
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
CUresult cuCtxPushCurrent_v2(CUcontext context);
CUresult cuCtxPopCurrent_v2(CUcontext *context);
CUresult cuPointerGetAttribute(void *value, int attribute, CUdeviceptr pointer);
CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end);
CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count, int *options,
                            void **values);
CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction function);

/* --- the current device ----------------------------------------------------------------------- */

static void begin(void)
{
    CUcontext context = NULL;
    (void)cuDevicePrimaryCtxRetain(&context, current);
    (void)cuCtxPushCurrent_v2(context);
}

static int end(int result)
{
    CUcontext context = NULL;
    (void)cuCtxPopCurrent_v2(&context);
    return result;
}

static void say(const char *line)
{
    const char *path = getenv("FAKEHIP_LOG");
    FILE *file = path != NULL ? fopen(path, "a") : NULL;
    if (file != NULL) {
        (void)fprintf(file, "%s\n", line);
        (void)fclose(file);
    }
}

HIP int hipGetDevice(int *device)
{
    *device = (int)lie_or("hipGetDevice", "value", (uint64_t)current);
    return 0;
}

HIP int hipSetDevice(int device)
{
    char line[32];
    if (device < 0 || device >= DEVICES) {
        return INVALID_DEVICE;
    }
    current = device;
    (void)snprintf(line, sizeof(line), "device %d", device);
    say(line);
    return 0;
}

/* --- what there is ---------------------------------------------------------------------------- */

HIP const char *hipGetErrorName(int error)
{
    return error == CUDA_ERROR_NO_DEVICE ? "hipErrorNoDevice" : "hipErrorFake";
}

HIP const char *hipGetErrorString(int error)
{
    uint64_t number = 0;
    (void)error;
    return lie_is_told("hipGetErrorString", "value", &number) ? NULL : "as the fake runtime says";
}

HIP int hipInit(unsigned int flags)
{
    (void)flags;
    return FAKE_HIP_INIT;
}

HIP int hipRuntimeGetVersion(int *version)
{
#ifdef FAKE_HIP_FIVE
    *version = 50221153;
#else
    *version = 70051831;
#endif
    *version = (int)lie_or("hipRuntimeGetVersion", "value", (uint64_t)*version);
    return 0;
}

HIP int hipGetDeviceCount(int *count)
{
    *count = (int)lie_or("hipGetDeviceCount", "value", DEVICES);
    return 0;
}

HIP int hipDeviceGetName(char *name, int length, int device)
{
    uint64_t number = 0;
    (void)snprintf(name, (size_t)length, "Fake Instinct %d", device + 1);
    if (lie_is_told("hipDeviceGetName", "value", &number)) {
        lie_fill(name, (size_t)length, number); /* with no end, perhaps */
    }
    return 0;
}

HIP int hipDeviceTotalMem(size_t *bytes, int device)
{
    (void)device;
    *bytes = lie_or("hipDeviceTotalMem", "value", (uint64_t)1 << 30);
    return 0;
}

HIP int hipDeviceGetAttribute(int *value, int attribute, int device)
{
    const bool block = (attribute >= 26 && attribute <= 28) || attribute == 56;
    *value = block             ? 1024     /* MaxBlockDimX, Y, Z; MaxThreadsPerBlock */
             : attribute == 63 ? 104      /* MultiprocessorCount */
             : attribute == 74 ? 64 << 10 /* MaxSharedMemoryPerBlock */
             : attribute == 87 ? (device == 0 ? 64 : 32) /* WarpSize */
                               : 0;
    *value = (int)lie_or("hipDeviceGetAttribute", "value", (uint64_t)*value);
    return 0;
}

/* `at`: where the release has gcnArchName, a text of 256 bytes. Some of what stands before it looks
 * like text, too. */
static int fill_properties(char *properties, size_t at, size_t size, int device)
{
    uint64_t number = 0;
    if (device < 0 || device >= DEVICES) {
        return INVALID_DEVICE;
    }
    memset(properties, 0, size);
    (void)snprintf(properties, 256, "gfx90a");
    memcpy(properties + 272, "gfx!", 4);
    (void)snprintf(properties + at, 256, "%s", devices[device].arch);
    if (lie_is_told("hipGetDeviceProperties", "value", &number)) {
        lie_fill(properties, size, number);
    }
    return 0;
}

#ifdef FAKE_HIP_FIVE
HIP int hipGetDeviceProperties(void *properties, int device)
{
    return fill_properties(properties, 396, 792, device);
}
#else
HIP int hipGetDevicePropertiesR0600(void *properties, int device)
{
    return fill_properties(properties, 1160, 1472, device);
}

HIP int hipDeviceGetUuid(CUuuid *uuid, int device)
{
    memset(uuid, device + 1, sizeof(*uuid));
    return 0;
}
#endif

/* --- calls that are handed on to the driver below --------------------------------------------- */

#define GIVE(hip, cuda, parameters, arguments)                                                     \
    CUresult cuda parameters;                                                                      \
    HIP int hip parameters                                                                         \
    {                                                                                              \
        begin();                                                                                   \
        return end(cuda arguments);                                                                \
    }

GIVE(hipMalloc, cuMemAlloc_v2, (CUdeviceptr * pointer, size_t size), (pointer, size))
GIVE(hipFree, cuMemFree_v2, (CUdeviceptr pointer), (pointer))
GIVE(hipMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2,
     (CUdeviceptr to, const void *from, size_t size, CUstream stream), (to, from, size, stream))
GIVE(hipMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2,
     (void *to, CUdeviceptr from, size_t size, CUstream stream), (to, from, size, stream))
GIVE(hipMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2,
     (CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream), (to, from, size, stream))
GIVE(hipMemsetD8Async, cuMemsetD8Async,
     (CUdeviceptr to, unsigned char value, size_t count, CUstream stream),
     (to, value, count, stream))
GIVE(hipMemsetD16Async, cuMemsetD16Async,
     (CUdeviceptr to, unsigned short value, size_t count, CUstream stream),
     (to, value, count, stream))
GIVE(hipMemsetD32Async, cuMemsetD32Async,
     (CUdeviceptr to, unsigned int value, size_t count, CUstream stream),
     (to, value, count, stream))
GIVE(hipStreamCreateWithFlags, cuStreamCreate, (CUstream * stream, unsigned int flags),
     (stream, flags))
GIVE(hipStreamDestroy, cuStreamDestroy_v2, (CUstream stream), (stream))
GIVE(hipStreamSynchronize, cuStreamSynchronize, (CUstream stream), (stream))
GIVE(hipStreamWaitEvent, cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned int flags),
     (stream, event, flags))
GIVE(hipEventCreateWithFlags, cuEventCreate, (CUevent * event, unsigned int flags), (event, flags))
GIVE(hipEventDestroy, cuEventDestroy_v2, (CUevent event), (event))
GIVE(hipEventRecord, cuEventRecord, (CUevent event, CUstream stream), (event, stream))
GIVE(hipEventQuery, cuEventQuery, (CUevent event), (event))
GIVE(hipEventSynchronize, cuEventSynchronize, (CUevent event), (event))
GIVE(hipModuleUnload, cuModuleUnload, (CUmodule module), (module))
GIVE(hipModuleGetFunction, cuModuleGetFunction,
     (CUfunction * function, CUmodule module, const char *name), (function, module, name))
#ifndef FAKE_WITHOUT_LAUNCH
GIVE(hipModuleLaunchKernel, cuLaunchKernel,
     (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
      unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared,
      CUstream stream, void **arguments, void **extra),
     (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, arguments,
      extra))
#endif

/* --- calls with ways of HIP's own ------------------------------------------------------------- */

HIP int hipPointerGetAttribute(void *value, int attribute, CUdeviceptr pointer)
{
    const int result = cuPointerGetAttribute(value, attribute, pointer);
#ifdef FAKE_HIP_FIVE
    if (result == 0 && attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE) {
        *(int *)value = 1;
    }
#endif
    return result;
}

HIP int hipEventElapsedTime(float *ms, CUevent start, CUevent stop)
{
    uint64_t number = 0;
    const int result = cuEventElapsedTime(ms, start, stop);
    if (lie_is_told("hipEventElapsedTime", "value", &number)) {
        lie_fill(ms, sizeof(*ms), number);
    }
    return result;
}

/* The shared object that fakehiprtc.c has put behind the headers, as fakecuda.c takes it. */
HIP int hipModuleLoadData(CUmodule *module, const void *image)
{
    const unsigned char *bytes = image;
    const uint64_t at = kn_get_u64(bytes + 40);
    const uint32_t flags = kn_get_u32(bytes + 48);
    if (memcmp(bytes, "\177ELF", 4) != 0 || bytes[18] != 224 ||
        (flags & 0xff) != devices[current].mach || memcmp(bytes + at, "KHIP", 4) != 0) {
        return INVALID_KERNEL_FILE;
    }
    const uint64_t size = kn_get_u64(bytes + at + 8);
    char *copy = malloc(size + 16);
    if (copy == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memcpy(copy, bytes + at, size + 16);
    memcpy(copy, "KCUB", 4);
    memcpy(copy + 8, &size, sizeof(size)); /* as fakecuda.c reads it */
    begin();
    const int result = end(cuModuleLoadDataEx(module, copy, 0, NULL, NULL));
    free(copy);
    return result;
}

HIP int hipFuncGetAttribute(int *value, int attribute, CUfunction function)
{
    const int result = cuFuncGetAttribute(value, attribute, function);
    *value = (int)lie_or("hipFuncGetAttribute", "value", (uint64_t)*value);
    return result;
}

#if !defined(FAKE_WITHOUT_LAUNCH) && !defined(FAKE_HIP_FIVE)
HIP int hipModuleLaunchCooperativeKernel(CUfunction function, unsigned int grid_x,
                                         unsigned int grid_y, unsigned int grid_z,
                                         unsigned int block_x, unsigned int block_y,
                                         unsigned int block_z, unsigned int shared, CUstream stream,
                                         void **arguments)
{
    say("cooperative");
    return hipModuleLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                 shared, stream, arguments, NULL);
}
#endif
