/* Loaded code: cuLibraryLoadData where the driver has it (lazy loading: 0.1 ms where
 * cuModuleLoadData takes 5), else cuModuleLoadDataEx; and what a function of it is like. */
#include <stdlib.h>
#include <string.h>

#include "apis/cuda/backend/cubin.h"
#include "apis/cuda/backend/instance.h"
#include "base/diag.h"
#include "base/text.h"

/* The shared memory, static and dynamic, that every kernel may use without asking. */
enum { SHARED_FREE = 48 << 10 };

enum { EAGER_KERNELS = 4 };

static const kn_cuda *cuda_of(const kn_gpu_program *program)
{
    return ((const kn_cuda_device *)program->device)->cuda;
}

static kiln_status fail_load(const kn_cuda *cuda, CUresult result, const char *what,
                             kiln_diag *diag)
{
    kiln_status status = kn_cuda_fail(cuda, result, what, diag);
    if (status == KILN_E_REJECTED && diag != NULL) {
        size_t used = strlen(diag->why);
        kn_text_putf(diag->why + used, sizeof(diag->why) - used, "; NVRTC %d.%d, driver CUDA %d.%d",
                     cuda->toolkit.major, cuda->toolkit.minor, cuda->driver_version / 1000,
                     cuda->driver_version % 1000 / 10);
    }
    return status;
}

/* Lazy loading leaves most of the work to the first use of a function (4 ms where the load took
 * 0.2). A program of few kernels will use them; whatever fails here, fails there and is
 * reported. */
static void load_functions(const kn_gpu_program *program)
{
    const kn_cuda_driver *driver = &cuda_of(program)->driver;
    CUlibrary library = (CUlibrary)program->library;
    CUkernel kernels[EAGER_KERNELS];
    CUfunction function = NULL;
    unsigned int count = 0;
    if (library == NULL || driver->cuLibraryGetKernelCount == NULL ||
        driver->cuLibraryEnumerateKernels == NULL ||
        driver->cuLibraryGetKernelCount(&count, library) != CUDA_SUCCESS || count > EAGER_KERNELS ||
        driver->cuLibraryEnumerateKernels(kernels, count, library) != CUDA_SUCCESS) {
        return;
    }
    for (unsigned int i = 0; i < count; i++) {
        (void)driver->cuKernelGetFunction(&function, kernels[i]);
    }
}

kiln_status kn_cuda_load(kn_gpu_program *program, bool eager, kiln_diag *diag)
{
    const kn_cuda *cuda = cuda_of(program);
    const kn_cuda_driver *driver = &cuda->driver;
    CUlibrary library = NULL;
    CUmodule module = NULL;
    if (driver->cuLibraryLoadData != NULL && driver->cuLibraryUnload != NULL &&
        driver->cuLibraryGetKernel != NULL && driver->cuKernelGetFunction != NULL) {
        CUresult result =
            driver->cuLibraryLoadData(&library, program->image, NULL, NULL, 0, NULL, NULL, 0);
        program->library = library;
        if (result == CUDA_SUCCESS && eager) {
            load_functions(program);
        }
        return result == CUDA_SUCCESS ? KILN_OK
                                      : fail_load(cuda, result, "cuLibraryLoadData", diag);
    }
    CUresult result = driver->cuModuleLoadDataEx(&module, program->image, 0, NULL, NULL);
    program->module = module;
    return result == CUDA_SUCCESS ? KILN_OK : fail_load(cuda, result, "cuModuleLoadData", diag);
}

void kn_cuda_unload(kn_gpu_program *program)
{
    const kn_cuda_driver *driver = &cuda_of(program)->driver;
    if (program->library != NULL) {
        (void)driver->cuLibraryUnload((CUlibrary)program->library);
    } else {
        (void)driver->gpu.module_unload(program->module);
    }
}

/* A kernel's parameters have 32,764 bytes at most. */
#define PARAMS_LIMIT 32764u
#define PARAMS_STEP 1024u

/* Parameter sizes where the driver reports them (12.4 and later); kinds it does not know. */
static kiln_status reflect_kernel(const kn_gpu_program *program, const char *name,
                                  kn_gpu_function *function, kiln_diag *diag)
{
    const kn_cuda *cuda = cuda_of(program);
    size_t offset = 0;
    size_t size = 0;
    if (cuda->driver.cuFuncGetParamInfo == NULL) {
        function->param_count = SIZE_MAX;
        return KILN_OK;
    }
    const size_t known = kn_cubin_param_count(program->image, program->image_size, name);
    while (function->param_count < known && function->param_count < PARAMS_LIMIT &&
           cuda->driver.cuFuncGetParamInfo((CUfunction)function->function, function->param_count,
                                           &offset, &size) == CUDA_SUCCESS) {
        const size_t count = function->param_count;
        kiln_param *grown = function->params;
        if (count % PARAMS_STEP == 0) {
            grown = (kiln_param *)realloc(grown, (count + PARAMS_STEP) * sizeof(kiln_param));
        }
        if (grown == NULL) {
            return kn_no_memory(diag, "parameters");
        }
        function->params = grown;
        memset(&grown[function->param_count], 0, sizeof(kiln_param));
        grown[function->param_count].size = size;
        function->param_count++;
    }
    return KILN_OK;
}

kiln_status kn_cuda_find(kn_gpu_program *program, const char *name, kn_gpu_function *function,
                         int *out_result, kiln_diag *diag)
{
    const kn_cuda_driver *driver = &cuda_of(program)->driver;
    CUfunction found = NULL;
    CUkernel kernel = NULL;
    if (program->library == NULL) {
        *out_result = driver->gpu.module_function(&function->function, program->module, name);
    } else {
        *out_result = driver->cuLibraryGetKernel(&kernel, (CUlibrary)program->library, name);
        if (*out_result == CUDA_SUCCESS) {
            *out_result = driver->cuKernelGetFunction(&found, kernel);
        }
        function->function = found;
    }
    if (*out_result == CUDA_SUCCESS) {
        return reflect_kernel(program, name, function, diag);
    }
    return *out_result == CUDA_ERROR_NOT_FOUND
               ? KILN_OK
               : fail_load(cuda_of(program), *out_result, "cuLibraryGetKernel", diag);
}

/* Under the program's lock: what a launch gets without asking. */
static void know_shared(const kn_cuda_driver *driver, kn_gpu_function *function)
{
    int fixed = 0;
    if (function->shared_known) {
        return;
    }
    if (driver->gpu.function_attribute(&fixed, KN_GPU_FUNCTION_SHARED_BYTES, function->function) !=
        CUDA_SUCCESS) {
        fixed = SHARED_FREE; /* then every launch asks */
    }
    function->shared_limit = fixed >= 0 && fixed < SHARED_FREE ? SHARED_FREE - fixed : 0;
    function->shared_known = true;
}

/* The driver keeps the last limit that was set, not the largest: two threads must not set theirs in
 * between each other. */
int kn_cuda_allow_shared(kn_gpu_program *program, kn_gpu_function *function, int bytes)
{
    const kn_cuda_driver *driver = &cuda_of(program)->driver;
    CUresult result = CUDA_SUCCESS;
    kn_mutex_lock(&program->lock);
    know_shared(driver, function);
    if (bytes > function->shared_limit) {
        result = driver->cuFuncSetAttribute((CUfunction)function->function,
                                            CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes);
        if (result == CUDA_SUCCESS) {
            function->shared_limit = bytes;
        }
    }
    kn_mutex_unlock(&program->lock);
    return result;
}

/* With attributes, where the driver has them (11.8). */
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
