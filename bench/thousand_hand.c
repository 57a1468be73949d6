/* Loading many binaries by the drivers' own calls. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "apis/cuda/backend/types.h"
#include "bench/thousand.h"

#define OPENCL(X)                                                                                  \
    X(clGetPlatformIDs)                                                                            \
    X(clGetDeviceIDs)                                                                              \
    X(clCreateContext)                                                                             \
    X(clCreateProgramWithBinary)                                                                   \
    X(clBuildProgram)                                                                              \
    X(clCreateKernel)
#define CUDA(X)                                                                                    \
    X(cuInit, (unsigned))                                                                          \
    X(cuDeviceGet, (CUdevice *, int))                                                              \
    X(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))                                           \
    X(cuCtxPushCurrent_v2, (CUcontext))                                                            \
    X(cuModuleLoadDataEx, (CUmodule *, const void *, unsigned, int *, void **))                    \
    X(cuModuleGetFunction, (CUfunction *, CUmodule, const char *))

static struct {
#define X(name) __typeof__(&name) name;
    OPENCL(X)
#undef X
    cl_device_id device;
    cl_context context;
} cl;

static struct {
#define X(name, parameters) CUresult(*name) parameters;
    CUDA(X)
#undef X
    CUcontext context;
} cu;

static bool open_opencl(void)
{
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    void *symbol = NULL;
    cl_platform_id platform = NULL;
    cl_int error = CL_SUCCESS;
    bool whole = library != NULL;
#define X(name)                                                                                    \
    symbol = whole ? dlsym(library, #name) : NULL;                                                 \
    whole = whole && symbol != NULL;                                                               \
    memcpy(&cl.name, &symbol, sizeof(symbol));
    OPENCL(X)
#undef X
    if (!whole || cl.clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS ||
        cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &cl.device, NULL) != CL_SUCCESS) {
        return false;
    }
    cl.context = cl.clCreateContext(NULL, 1, &cl.device, NULL, NULL, &error);
    return error == CL_SUCCESS;
}

static bool open_cuda(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void *symbol = NULL;
    CUdevice device = 0;
    bool whole = library != NULL;
#define X(name, parameters)                                                                        \
    symbol = whole ? dlsym(library, #name) : NULL;                                                 \
    whole = whole && symbol != NULL;                                                               \
    memcpy(&cu.name, &symbol, sizeof(symbol));
    CUDA(X)
#undef X
    return whole && cu.cuInit(0) == CUDA_SUCCESS && cu.cuDeviceGet(&device, 0) == CUDA_SUCCESS &&
           cu.cuDevicePrimaryCtxRetain(&cu.context, device) == CUDA_SUCCESS;
}

bool thousand_hand_open(const char *backend)
{
    return strcmp(backend, "cuda") == 0 ? open_cuda() : open_opencl();
}

bool thousand_hand_enter(const char *backend)
{
    return strcmp(backend, "cuda") != 0 || cu.cuCtxPushCurrent_v2(cu.context) == CUDA_SUCCESS;
}

static bool load_opencl(const void *binary, size_t size, const char *entry)
{
    cl_int error = CL_SUCCESS, binary_error = CL_SUCCESS;
    const unsigned char *parts[] = {binary};
    cl_program program = cl.clCreateProgramWithBinary(cl.context, 1, &cl.device, &size, parts,
                                                      &binary_error, &error);
    error = error == CL_SUCCESS ? cl.clBuildProgram(program, 1, &cl.device, "", NULL, NULL) : error;
    return error == CL_SUCCESS && cl.clCreateKernel(program, entry, &error) != NULL;
}

bool thousand_hand_load(const char *backend, const void *binary, size_t size, const char *entry)
{
    CUmodule module = NULL;
    CUfunction function = NULL;
    if (strcmp(backend, "cuda") != 0) {
        return load_opencl(binary, size, entry);
    }
    return cu.cuModuleLoadDataEx(&module, binary, 0, NULL, NULL) == CUDA_SUCCESS &&
           cu.cuModuleGetFunction(&function, module, entry) == CUDA_SUCCESS;
}
