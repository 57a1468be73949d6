/* The matrix product on CUDA by hand: a CUBIN from a file, or from NVRTC, into the driver. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apis/cuda/backend/types.h"
#include "bench/bench.h"
#include "bench/process/by_hand.h"
#include "bench/warm.h"

enum { BYTES = WARM_SIZE * WARM_SIZE * sizeof(float) };

#define DRIVER(X)                                                                                  \
    X(CUresult, cuInit, (unsigned))                                                                \
    X(CUresult, cuDeviceGet, (CUdevice *, int))                                                    \
    X(CUresult, cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))                                 \
    X(CUresult, cuCtxPushCurrent_v2, (CUcontext))                                                  \
    X(CUresult, cuModuleLoadDataEx, (CUmodule *, const void *, unsigned, int *, void **))          \
    X(CUresult, cuModuleGetFunction, (CUfunction *, CUmodule, const char *))                       \
    X(CUresult, cuMemAlloc_v2, (CUdeviceptr *, size_t))                                            \
    X(CUresult, cuMemcpyHtoDAsync_v2, (CUdeviceptr, const void *, size_t, CUstream))               \
    X(CUresult, cuMemcpyDtoHAsync_v2, (void *, CUdeviceptr, size_t, CUstream))                     \
    X(CUresult, cuStreamSynchronize, (CUstream))                                                   \
    X(CUresult, cuLaunchKernel,                                                                    \
      (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, \
       void **, void **))
#define NVRTC(X)                                                                                   \
    X(nvrtcResult, nvrtcCreateProgram,                                                             \
      (nvrtcProgram *, const char *, const char *, int, const char *const *, const char *const *)) \
    X(nvrtcResult, nvrtcCompileProgram, (nvrtcProgram, int, const char *const *))                  \
    X(nvrtcResult, nvrtcGetCUBINSize, (nvrtcProgram, size_t *))                                    \
    X(nvrtcResult, nvrtcGetCUBIN, (nvrtcProgram, char *))

static struct {
#define X(result, name, parameters) result(*name) parameters;
    DRIVER(X)
    NVRTC(X)
#undef X
} cu;

static bool bind_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void *symbol = NULL;
    bool whole = library != NULL;
#define X(result, name, parameters)                                                                \
    symbol = whole ? dlsym(library, #name) : NULL;                                                 \
    whole = whole && symbol != NULL;                                                               \
    memcpy(&cu.name, &symbol, sizeof(symbol));
    DRIVER(X)
#undef X
    return whole;
}

static bool bind_nvrtc(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *symbol = NULL;
    bool whole = library != NULL;
#define X(result, name, parameters)                                                                \
    symbol = whole ? dlsym(library, #name) : NULL;                                                 \
    whole = whole && symbol != NULL;                                                               \
    memcpy(&cu.name, &symbol, sizeof(symbol));
    NVRTC(X)
#undef X
    return whole;
}

/* As kiln asks for it; NVRTC's own cache costs a cuInit and is off for both. */
static unsigned char *compile_text(const char *path, const char *nvrtc)
{
    size_t size = 0;
    unsigned char *bytes = bench_read(path, &size);
    char *text = bytes != NULL ? calloc(1, size + 1) : NULL;
    unsigned char *cubin = NULL;
    nvrtcProgram program = NULL;
    const char *const options[] = {"--gpu-architecture=sm_90", "--no-cache"};
    if (text != NULL && bind_nvrtc(nvrtc)) {
        memcpy(text, bytes, size);
        if (cu.nvrtcCreateProgram(&program, text, "matmul.cu", 0, NULL, NULL) == 0 &&
            (cu.nvrtcCompileProgram(program, 2, options) == 0 ||
             cu.nvrtcCompileProgram(program, 1, options) == 0) &&
            cu.nvrtcGetCUBINSize(program, &size) == 0 && (cubin = malloc(size)) != NULL) {
            (void)cu.nvrtcGetCUBIN(program, (char *)cubin);
        }
    }
    free(text);
    free(bytes);
    return cubin;
}

static bool run_cubin(const void *cubin)
{
    static float ones[WARM_SIZE * WARM_SIZE], product[WARM_SIZE * WARM_SIZE];
    CUdeviceptr buffers[3] = {0};
    CUmodule module = NULL;
    CUfunction function = NULL;
    int n = WARM_SIZE;
    void *parameters[] = {&buffers[0], &buffers[1], &buffers[2], &n};
    for (int i = 0; i < WARM_SIZE * WARM_SIZE; i++) {
        ones[i] = 1.0F;
    }
    bool good = cu.cuModuleLoadDataEx(&module, cubin, 0, NULL, NULL) == 0 &&
                cu.cuModuleGetFunction(&function, module, "matmul") == 0;
    for (int i = 0; i < 3 && good; i++) {
        good = cu.cuMemAlloc_v2(&buffers[i], BYTES) == 0 &&
               cu.cuMemcpyHtoDAsync_v2(buffers[i], ones, BYTES, NULL) == 0;
    }
    const unsigned groups = WARM_SIZE / WARM_GROUP;
    good = good &&
           cu.cuLaunchKernel(function, groups, groups, 1, WARM_GROUP, WARM_GROUP, 1, 0, NULL,
                             parameters, NULL) == 0 &&
           cu.cuMemcpyDtoHAsync_v2(product, buffers[2], BYTES, NULL) == 0 &&
           cu.cuStreamSynchronize(NULL) == 0;
    printf("%g\n", (double)product[0]);
    return good && product[0] == (float)WARM_SIZE;
}

bool by_hand_cuda(const char *path, const char *nvrtc)
{
    CUdevice device = 0;
    CUcontext context = NULL;
    size_t size = 0;
    if (!bind_driver() || cu.cuInit(0) != 0 || cu.cuDeviceGet(&device, 0) != 0 ||
        cu.cuDevicePrimaryCtxRetain(&context, device) != 0 ||
        cu.cuCtxPushCurrent_v2(context) != 0) {
        return false;
    }
    unsigned char *cubin = nvrtc != NULL ? compile_text(path, nvrtc) : bench_read(path, &size);
    const bool good = cubin != NULL && run_cubin(cubin);
    free(cubin);
    return good;
}
