/* A small libcuda that really runs what the NVRTC next to it (fakenvrtc.c) made: device memory is
 * host memory, a CUBIN is a shared object with one caller a kernel. Variants by definition:
 *   FAKE_INIT=n          cuInit gives n (34: the toolkit's stub, 100: no device, 803: mismatch)
 *   FAKE_VERSION=n       cuDriverGetVersion gives n
 *   FAKE_WITHOUT_LAUNCH  cuLaunchKernel is missing
 *   FAKE_WITHOUT_LIBRARY no cuLibrary*, no cuLaunchKernelEx, no cuFuncGetParamInfo: a driver
 *                        of 11.0
 *   FAKE_INERT           binaries are taken and not opened: for benchmarks, no launches
 *
 * $FAKECUDA_REFUSE=n refuses the first n binaries of this process; $FAKECUDA_LOG=path gets
 * a line for every launch with attributes, and for cuInit; $FAKECUDA_STATIC_SHARED=n: kernels have
 * n bytes of static shared memory; $FAKECUDA_SYNCHRONIZE=n: waiting for a stream gives n.
 * $FAKECUDA_ORDER=path gets a line for what orders streams: "record EVENT STREAM",
 * "wait STREAM EVENT", "launch STREAM FUNCTION", in hexadecimal. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "support/fakecuda/fakecuda.h"

#ifndef FAKE_INIT
#define FAKE_INIT 0
#endif
#ifndef FAKE_VERSION
#define FAKE_VERSION 13000
#endif

#include "support/lies.h"

enum { DEVICES = 2, DEPTH = 16 };

struct CUctx_st {
    int device;
};
struct CUfunc_st {
    void (*call)(void **args);
    int (*param)(size_t index, size_t *offset, size_t *size);
    struct CUmod_st *module;
    int fixed_shared, shared_limit;
};
struct CUmod_st {
    void *library;
    void (*run)(void (*call)(void **), void **args, const unsigned *grid, const unsigned *block,
                unsigned shared);
    struct CUfunc_st functions[64];
    int count;
};
struct CUstream_st {
    int unused;
};
struct CUevent_st {
    struct timespec time;
};
struct CUlinkState_st {
    char *cubin;
    size_t size;
};

static struct CUctx_st contexts[DEVICES] = {{0}, {1}};
static _Thread_local CUcontext stack[DEPTH];
static _Thread_local int depth;
static int loads;

static void tell_in(const char *variable, const char *line)
{
    const char *path = getenv(variable);
    FILE *file = path != NULL ? fopen(path, "a") : NULL;
    if (file != NULL) {
        (void)fprintf(file, "%s\n", line);
        (void)fclose(file);
    }
}

static void tell(const char *line)
{
    tell_in("FAKECUDA_LOG", line);
}

static void tell_order(const char *what, const void *first, const void *second)
{
    char line[128];
    (void)snprintf(line, sizeof(line), "%s %#lx %#lx", what, (unsigned long)(uintptr_t)first,
                   (unsigned long)(uintptr_t)second);
    tell_in("FAKECUDA_ORDER", line);
}

int fakecuda_device(void)
{
    return depth > 0 ? stack[depth - 1]->device : -1;
}

/* --- driver and devices ----------------------------------------------------------------------- */

EXPORT CUresult cuGetErrorName(CUresult error, const char **text)
{
    *text = error == CUDA_ERROR_STUB_LIBRARY             ? "CUDA_ERROR_STUB_LIBRARY"
            : error == CUDA_ERROR_NO_DEVICE              ? "CUDA_ERROR_NO_DEVICE"
            : error == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH ? "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"
                                                         : "CUDA_ERROR_FAKE";
    return CUDA_SUCCESS;
}

EXPORT CUresult cuGetErrorString(CUresult error, const char **text)
{
    (void)error;
    *text = "as the fake driver says";
    return CUDA_SUCCESS;
}

EXPORT CUresult cuInit(unsigned int flags)
{
    (void)flags;
    tell("cuInit");
    return FAKE_INIT;
}

EXPORT CUresult cuDriverGetVersion(int *version)
{
    *version = FAKE_VERSION;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetCount(int *count)
{
    *count = (int)lie_or("cuDeviceGetCount", "value", DEVICES);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    *device = ordinal;
    return ordinal < DEVICES ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

EXPORT CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
    uint64_t number = 0;
    (void)snprintf(name, (size_t)length, "Fake H%d00", device + 1);
    if (lie_is_told("cuDeviceGetName", "value", &number)) {
        lie_fill(name, (size_t)length, number); /* with no end, perhaps */
    }
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    (void)device;
    *bytes = lie_or("cuDeviceTotalMem", "value", (uint64_t)1 << 30);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
    (void)device;
    *value = attribute == CU_ATTRIBUTE_MAX_THREADS_PER_BLOCK ||
                     attribute == CU_ATTRIBUTE_MAX_BLOCK_DIM_X ||
                     attribute == CU_ATTRIBUTE_MAX_BLOCK_DIM_Y
                 ? 1024
             : attribute == CU_ATTRIBUTE_MAX_BLOCK_DIM_Z                   ? 64
             : attribute == CU_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN ? 227 << 10
             : attribute == CU_ATTRIBUTE_WARP_SIZE                         ? 32
             : attribute == CU_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR          ? 9
                                                                           : 0;
    *value = (int)lie_or("cuDeviceGetAttribute", "value", (uint64_t)*value);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    memset(uuid, device + 1, sizeof(*uuid));
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    *context = &contexts[device];
    return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    (void)device;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    if (depth == DEPTH) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    IN_CONTEXT();
    *context = stack[--depth];
    return CUDA_SUCCESS;
}

/* --- streams and events ----------------------------------------------------------------------- */

EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
    (void)flags;
    IN_CONTEXT();
    *stream = calloc(1, sizeof(**stream));
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamDestroy_v2(CUstream stream)
{
    free(stream);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamSynchronize(CUstream stream)
{
    const char *result = getenv("FAKECUDA_SYNCHRONIZE");
    (void)stream;
    IN_CONTEXT();
    return result != NULL ? atoi(result) : CUDA_SUCCESS;
}

EXPORT CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
    (void)flags;
    IN_CONTEXT();
    *event = calloc(1, sizeof(**event));
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventDestroy_v2(CUevent event)
{
    free(event);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventRecord(CUevent event, CUstream stream)
{
    tell_order("record", event, stream);
    (void)clock_gettime(CLOCK_MONOTONIC, &event->time);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
    (void)flags;
    tell_order("wait", stream, event);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventQuery(CUevent event)
{
    (void)event;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventSynchronize(CUevent event)
{
    (void)event;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
    *ms = (float)(end->time.tv_sec - start->time.tv_sec) * 1e3F +
          (float)(end->time.tv_nsec - start->time.tv_nsec) / 1e6F;
    return CUDA_SUCCESS;
}

/* --- code ------------------------------------------------------------------------------------- */

#ifdef FAKE_INERT
static CUresult open_code(CUmodule module, const char *bytes, uint64_t size)
{
    (void)module, (void)bytes, (void)size;
    return CUDA_SUCCESS;
}

static bool find_code(CUmodule module, const char *name, struct CUfunc_st *function)
{
    (void)module, (void)name, (void)function;
    return true;
}
#else
static CUresult open_code(CUmodule module, const char *bytes, uint64_t size)
{
    char path[64];
    int file = memfd_create("fakecuda", MFD_CLOEXEC);
    if (file < 0 || write(file, bytes, size) != (ssize_t)size) {
        return CUDA_ERROR_UNKNOWN;
    }
    (void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), file);
    /* The descriptor stays open: another of the same number would look like this library. */
    module->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (module->library == NULL) {
        return CUDA_ERROR_INVALID_IMAGE;
    }
    void *run = dlsym(module->library, "kt_run");
    memcpy(&module->run, &run, sizeof(run));
    return CUDA_SUCCESS;
}

static bool find_code(CUmodule module, const char *name, struct CUfunc_st *function)
{
    char symbol[600];
    (void)snprintf(symbol, sizeof(symbol), "kt_call_%s", name);
    void *call = dlsym(module->library, symbol);
    (void)snprintf(symbol, sizeof(symbol), "kt_param_%s", name);
    void *param = dlsym(module->library, symbol);
    memcpy(&function->call, &call, sizeof(call));
    memcpy(&function->param, &param, sizeof(param));
    return call != NULL && param != NULL;
}
#endif

EXPORT CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count,
                                   int *options, void **values)
{
    const char *bytes = image;
    const char *refuse = getenv("FAKECUDA_REFUSE");
    uint64_t size = 0;
    (void)count;
    (void)options;
    (void)values;
    IN_CONTEXT();
    if (memcmp(bytes, "KCUB", 4) != 0) {
        return CUDA_ERROR_INVALID_IMAGE;
    }
    if (refuse != NULL && loads++ < atoi(refuse)) {
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    memcpy(&size, bytes + 8, sizeof(size));
    CUmodule made = calloc(1, sizeof(*made));
    CUresult result = made != NULL ? open_code(made, bytes + 16, size) : CUDA_ERROR_INVALID_IMAGE;
    if (result != CUDA_SUCCESS) {
        free(made);
        return result;
    }
    *module = made;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleUnload(CUmodule module)
{
    if (module->library != NULL) {
        (void)dlclose(module->library);
    }
    free(module);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    IN_CONTEXT();
    struct CUfunc_st *made = &module->functions[module->count];
    if (module->count == 64 || !find_code(module, name, made)) {
        return CUDA_ERROR_NOT_FOUND;
    }
    module->count++;
    made->module = module;
    const char *fixed = getenv("FAKECUDA_STATIC_SHARED");
    made->fixed_shared = fixed != NULL ? atoi(fixed) : 0;
    made->shared_limit = (48 << 10) - made->fixed_shared;
    *function = made;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction function)
{
    *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024
             : attribute == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES   ? function->fixed_shared
                                                                  : 0;
    *value = (int)lie_or("cuFuncGetAttribute", "value", (uint64_t)*value);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value)
{
    (void)attribute;
    if (value > (227 << 10) - function->fixed_shared) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    function->shared_limit = value;
    return CUDA_SUCCESS;
}

#ifndef FAKE_WITHOUT_LAUNCH
EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                               unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                               unsigned int block_z, unsigned int shared, CUstream stream,
                               void **arguments, void **extra)
{
    const unsigned grid[3] = {grid_x, grid_y, grid_z};
    const unsigned block[3] = {block_x, block_y, block_z};
    (void)extra;
    IN_CONTEXT();
    tell_order("launch", stream, function);
    if ((int)shared > function->shared_limit || block_x * block_y * block_z > 1024) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    function->module->run(function->call, arguments, grid, block, shared);
    return CUDA_SUCCESS;
}
#endif

#if !defined(FAKE_WITHOUT_LIBRARY) && !defined(FAKE_WITHOUT_LAUNCH)
EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function,
                                 void **arguments, void **extra)
{
    char line[128];
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const CUlaunchAttribute *attribute = &config->attrs[i];
        if (attribute->id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
            (void)snprintf(line, sizeof(line), "cooperative %d", attribute->value.cooperative);
        } else {
            (void)snprintf(line, sizeof(line), "cluster %u %u %u", attribute->value.cluster.x,
                           attribute->value.cluster.y, attribute->value.cluster.z);
        }
        tell(line);
    }
    return cuLaunchKernel(function, config->gridDimX, config->gridDimY, config->gridDimZ,
                          config->blockDimX, config->blockDimY, config->blockDimZ,
                          config->sharedMemBytes, config->hStream, arguments, extra);
}

/* A library is its module here. */
EXPORT CUresult cuLibraryLoadData(CUlibrary *library, const void *code, int *jit_options,
                                  void **jit_values, unsigned int jit_count, int *library_options,
                                  void **library_values, unsigned int library_count)
{
    (void)library_options;
    (void)library_values;
    (void)library_count;
    return cuModuleLoadDataEx((CUmodule *)library, code, jit_count, jit_options, jit_values);
}

EXPORT CUresult cuLibraryUnload(CUlibrary library)
{
    return cuModuleUnload((CUmodule)library);
}

EXPORT CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    return cuModuleGetFunction((CUfunction *)kernel, (CUmodule)library, name);
}

EXPORT CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    *function = (CUfunction)kernel;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *size)
{
    uint64_t number = 0;
    if (lie_is_told("cuFuncGetParamInfo", "value", &number)) {
        *offset = *size = number;
        return CUDA_SUCCESS; /* for any index */
    }
    return function->param(index, offset, size) != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
#endif

/* --- PTX: the CUBIN in hexadecimal ------------------------------------------------------------ */

EXPORT CUresult cuLinkCreate_v2(unsigned int count, int *options, void **values, CUlinkState *state)
{
    (void)count;
    (void)options;
    (void)values;
    IN_CONTEXT();
    *state = calloc(1, sizeof(**state));
    tell("cuLinkCreate");
    return CUDA_SUCCESS;
}

EXPORT CUresult cuLinkAddData_v2(CUlinkState state, int type, void *data, size_t size,
                                 const char *name, unsigned int count, int *options, void **values)
{
    static const char head[] = "//KPTX\n";
    const char *text = data;
    const size_t used = sizeof(head) - 1;
    (void)type;
    (void)name;
    (void)count;
    (void)options;
    (void)values;
    if (size < used || strncmp(text, head, used) != 0) {
        return CUDA_ERROR_INVALID_PTX;
    }
    state->size = strspn(text + used, "0123456789abcdef") / 2;
    state->cubin = malloc(state->size + 1);
    for (size_t i = 0; state->cubin != NULL && i < state->size; i++) {
        const char pair[3] = {text[used + 2 * i], text[used + 2 * i + 1], '\0'};
        state->cubin[i] = (char)strtoul(pair, NULL, 16);
    }
    return CUDA_SUCCESS;
}

EXPORT CUresult cuLinkComplete(CUlinkState state, void **cubin, size_t *size)
{
    uint64_t number = 0;
    *cubin = state->cubin;
    *size = state->size;
    if (lie_is_told("cuLinkComplete", "length", &number) &&
        (number <= *size || number > (uint64_t)1 << 30)) {
        *size = number; /* a little more than there is nobody can tell */
    }
    if (lie_is_told("cuLinkComplete", "value", &number)) {
        *cubin = NULL;
    }
    return state->cubin != NULL ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}

EXPORT CUresult cuLinkDestroy(CUlinkState state)
{
    free(state->cubin);
    free(state);
    return CUDA_SUCCESS;
}
