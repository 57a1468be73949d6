/* Loaded code: cuLibraryLoadData where the driver has it (lazy loading: 0.1 ms where
 * cuModuleLoadData takes 5), else cuModuleLoadDataEx; and its functions, looked up once a name. */
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/cubin.h"
#include "backends/cuda/instance.h"
#include "base/diag.h"
#include "base/map.h"
#include "base/text.h"
#include "sys/thread.h"

/* The shared memory, static and dynamic, that every kernel may use without asking. */
enum { SHARED_FREE = 48 << 10 };

enum { EAGER_KERNELS = 4 };

typedef struct cuda_program {
    kn_cuda_device *device;
    CUlibrary library; /* NULL when it was loaded as a module */
    CUmodule module;
    void *image; /* the driver may read it later, while it loads lazily */
    size_t image_size;
    char **entries;
    char **lowered; /* parallel to entries; NULL: the entry's own name */
    size_t entry_count;
    kn_mutex lock;
    kn_map functions; /* entry -> kn_cuda_function */
} cuda_program;

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

static kiln_status load_image(cuda_program *program, kiln_diag *diag)
{
    const kn_cuda *cuda = program->device->cuda;
    const kn_cuda_driver *driver = &cuda->driver;
    CUresult result;
    if (driver->cuLibraryLoadData != NULL && driver->cuLibraryUnload != NULL &&
        driver->cuLibraryGetKernel != NULL && driver->cuKernelGetFunction != NULL) {
        result = driver->cuLibraryLoadData(&program->library, program->image, NULL, NULL, 0, NULL,
                                           NULL, 0);
        return result == CUDA_SUCCESS ? KILN_OK
                                      : fail_load(cuda, result, "cuLibraryLoadData", diag);
    }
    result = driver->cuModuleLoadDataEx(&program->module, program->image, 0, NULL, NULL);
    return result == CUDA_SUCCESS ? KILN_OK : fail_load(cuda, result, "cuModuleLoadData", diag);
}

/* Lazy loading leaves most of the work to the first use of a function (4 ms where the load took
 * 0.2). A program of few kernels will use them; whatever fails here, fails there and is
 * reported. */
static void load_functions(const cuda_program *program)
{
    const kn_cuda_driver *driver = &program->device->cuda->driver;
    CUkernel kernels[EAGER_KERNELS];
    CUfunction function = NULL;
    unsigned int count = 0;
    if (program->library == NULL || driver->cuLibraryGetKernelCount == NULL ||
        driver->cuLibraryEnumerateKernels == NULL ||
        driver->cuLibraryGetKernelCount(&count, program->library) != CUDA_SUCCESS ||
        count > EAGER_KERNELS ||
        driver->cuLibraryEnumerateKernels(kernels, count, program->library) != CUDA_SUCCESS) {
        return;
    }
    for (unsigned int i = 0; i < count; i++) {
        (void)driver->cuKernelGetFunction(&function, kernels[i]);
    }
}

/* Copies the entries, and their lowered names from the facts of whichever stage has them. */
static bool copy_entries(cuda_program *program, const kiln_load_request *request)
{
    const kiln_source *source = request->source;
    const size_t count = source != NULL ? source->entry_count : 0;
    program->entries = (char **)calloc(count + 1, sizeof(char *));
    program->lowered = (char **)calloc(count + 1, sizeof(char *));
    if (program->entries == NULL || program->lowered == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        char fact[KN_CUDA_FACT];
        program->entries[i] = kn_text_copy(source->entries[i]);
        if (program->entries[i] == NULL) {
            return false;
        }
        program->entry_count++;
        kn_cuda_lowered_fact(fact, i);
        for (size_t j = 0; j < request->artifact_count && program->lowered[i] == NULL; j++) {
            size_t size = 0;
            const char *name = (const char *)program->device->cuda->host->artifact_fact(
                request->artifacts[j], fact, &size);
            if (name != NULL && size > 0) {
                program->lowered[i] = kn_text_copy_n(name, size - 1);
                if (program->lowered[i] == NULL) {
                    return false;
                }
            }
        }
    }
    return true;
}

kiln_status kn_cuda_program_load(void *opaque, const kiln_load_request *request, void **out_program,
                                 kiln_diag *diag)
{
    kn_cuda_device *device = (kn_cuda_device *)opaque;
    *out_program = NULL;
    const bool from_source = request->artifact_count == 0;
    const void *data =
        from_source ? request->source->text : request->artifacts[request->artifact_count - 1]->data;
    const size_t size = from_source ? request->source->length
                                    : request->artifacts[request->artifact_count - 1]->size;
    if (from_source && !kn_cuda_image_is_whole(data, size)) { /* the cache checks its own */
        const char *name = request->source->name;
        return kiln_diag_set(
            diag, KILN_E_INVALID, "rebuild it, or copy all of it",
            name != NULL ? name : "cuda program",
            "the binary is truncated: it has %zu bytes, fewer than its header says", size);
    }
    cuda_program *program = (cuda_program *)calloc(1, sizeof(*program));
    if (program == NULL) {
        return kn_no_memory(diag, "cuda program");
    }
    program->device = device;
    kn_mutex_init(&program->lock);
    kn_map_init(&program->functions);
    program->image = kn_text_copy_n((const char *)data, size); /* PTX wants a NUL after it */
    program->image_size = size;
    kiln_status status = KILN_OK;
    if (program->image == NULL || !copy_entries(program, request)) {
        status = kn_no_memory(diag, "cuda program");
        goto cleanup;
    }
    status = kn_cuda_enter(device, diag);
    if (status == KILN_OK) {
        status = load_image(program, diag);
        if (status == KILN_OK && request->eager) {
            load_functions(program);
        }
        kn_cuda_leave(device);
    }
cleanup:
    if (status != KILN_OK) {
        kn_cuda_program_unload(device, program);
        return status;
    }
    *out_program = program;
    return KILN_OK;
}

static void destroy_functions(kn_map *functions)
{
    size_t cursor = 0;
    void *value = NULL;
    while (kn_map_next(functions, &cursor, NULL, NULL, &value)) {
        kn_cuda_function *function = (kn_cuda_function *)value;
        free(function->params);
        free(function);
    }
    kn_map_deinit(functions);
}

void kn_cuda_program_unload(void *opaque, void *handle)
{
    kn_cuda_device *device = (kn_cuda_device *)opaque;
    cuda_program *program = (cuda_program *)handle;
    if (program == NULL) {
        return;
    }
    if ((program->library != NULL || program->module != NULL) &&
        kn_cuda_enter(device, NULL) == KILN_OK) {
        if (program->library != NULL) {
            (void)device->cuda->driver.cuLibraryUnload(program->library);
        } else {
            (void)device->cuda->driver.cuModuleUnload(program->module);
        }
        kn_cuda_leave(device);
    }
    destroy_functions(&program->functions);
    for (size_t i = 0; i < program->entry_count; i++) {
        free(program->entries[i]);
        free(program->lowered[i]);
    }
    free(program->lowered);
    free(program->entries);
    free(program->image);
    kn_mutex_deinit(&program->lock);
    free(program);
}

/* A kernel's parameters have 32,764 bytes at most. */
#define PARAMS_LIMIT 32764u
#define PARAMS_STEP 1024u

/* Parameter sizes where the driver reports them (12.4 and later); kinds it does not know. */
static kiln_status reflect_kernel(const cuda_program *program, const char *name,
                                  kn_cuda_function *function, kiln_diag *diag)
{
    const kn_cuda *cuda = program->device->cuda;
    size_t offset = 0;
    size_t size = 0;
    if (cuda->driver.cuFuncGetParamInfo == NULL) {
        function->param_count = SIZE_MAX;
        return KILN_OK;
    }
    const size_t known = kn_cubin_param_count(program->image, program->image_size, name);
    while (function->param_count < known && function->param_count < PARAMS_LIMIT &&
           cuda->driver.cuFuncGetParamInfo(function->function, function->param_count, &offset,
                                           &size) == CUDA_SUCCESS) {
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

static kiln_status no_such_entry(const cuda_program *program, const char *entry, kiln_diag *diag)
{
    char list[512] = {0};
    for (size_t i = 0; i < program->entry_count; i++) {
        size_t used = strlen(list);
        kn_text_putf(list + used, sizeof(list) - used, "%s%s", i > 0 ? ", " : "",
                     program->entries[i]);
    }
    return kiln_diag_set(
        diag, KILN_MISS,
        "name it as the source does; a C++ kernel that is not extern \"C\" must be "
        "listed as an entry of the source",
        entry, "the program has no such kernel (entries: %s)",
        list[0] != '\0' ? list : "none were named");
}

static kiln_status find_function(cuda_program *program, const char *entry,
                                 kn_cuda_function *function, kiln_diag *diag)
{
    const kn_cuda_driver *driver = &program->device->cuda->driver;
    const char *name = entry;
    for (size_t i = 0; i < program->entry_count; i++) {
        if (strcmp(program->entries[i], entry) == 0 && program->lowered[i] != NULL) {
            name = program->lowered[i];
        }
    }
    CUresult result;
    if (program->library != NULL) {
        CUkernel kernel = NULL;
        result = driver->cuLibraryGetKernel(&kernel, program->library, name);
        if (result == CUDA_SUCCESS) {
            result = driver->cuKernelGetFunction(&function->function, kernel);
        }
    } else {
        result = driver->cuModuleGetFunction(&function->function, program->module, name);
    }
    if (result == CUDA_ERROR_NOT_FOUND) {
        return no_such_entry(program, entry, diag);
    }
    if (result != CUDA_SUCCESS) {
        return fail_load(program->device->cuda, result, "cuLibraryGetKernel", diag);
    }
    return reflect_kernel(program, name, function, diag);
}

kiln_status kn_cuda_program_function(void *handle, const char *entry,
                                     kn_cuda_function **out_function, kiln_diag *diag)
{
    cuda_program *program = (cuda_program *)handle;
    kiln_status status = KILN_OK;
    kn_mutex_lock(&program->lock);
    kn_cuda_function *function =
        (kn_cuda_function *)kn_map_find(&program->functions, entry, strlen(entry));
    if (function == NULL) {
        function = (kn_cuda_function *)calloc(1, sizeof(*function));
        status = function == NULL ? kn_no_memory(diag, entry)
                                  : find_function(program, entry, function, diag);
        if (status == KILN_OK &&
            !kn_map_put(&program->functions, entry, strlen(entry), function, NULL)) {
            status = kn_no_memory(diag, entry);
        }
        if (status != KILN_OK && function != NULL) {
            free(function->params);
            free(function);
            function = NULL;
        }
    }
    kn_mutex_unlock(&program->lock);
    *out_function = function;
    return status;
}

int kn_cuda_function_threads(const kn_cuda *cuda, const kn_cuda_function *function)
{
    int threads = 0;
    return cuda->driver.cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
                                           function->function) == CUDA_SUCCESS
               ? threads
               : 1024;
}

/* Under the program's lock: what a launch gets without asking. */
static void know_shared(const kn_cuda_driver *driver, kn_cuda_function *function)
{
    int fixed = 0;
    if (function->shared_known) {
        return;
    }
    if (driver->cuFuncGetAttribute(&fixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
                                   function->function) != CUDA_SUCCESS) {
        fixed = SHARED_FREE; /* then every launch asks */
    }
    function->shared_limit = SHARED_FREE - fixed;
    function->shared_known = true;
}

/* The driver keeps the last limit that was set, not the largest: two threads must not set theirs in
 * between each other. */
CUresult kn_cuda_program_allow_shared(void *handle, kn_cuda_function *function, int bytes)
{
    cuda_program *program = (cuda_program *)handle;
    const kn_cuda_driver *driver = &program->device->cuda->driver;
    CUresult result = CUDA_SUCCESS;
    if (bytes == 0) {
        return CUDA_SUCCESS;
    }
    kn_mutex_lock(&program->lock);
    know_shared(driver, function);
    if (bytes > function->shared_limit) {
        result = driver->cuFuncSetAttribute(function->function,
                                            CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes);
        if (result == CUDA_SUCCESS) {
            function->shared_limit = bytes;
        }
    }
    kn_mutex_unlock(&program->lock);
    return result;
}

const char *kn_cuda_program_entry(void *device, void *handle, size_t index)
{
    const cuda_program *program = (const cuda_program *)handle;
    (void)device;
    return index < program->entry_count ? program->entries[index] : NULL;
}

kiln_status kn_cuda_program_params(void *opaque, void *program, const char *entry,
                                   const kiln_param **out_params, size_t *out_count,
                                   kiln_diag *diag)
{
    kn_cuda_function *function = NULL;
    kiln_status status = kn_cuda_enter((const kn_cuda_device *)opaque, diag);
    *out_params = NULL;
    *out_count = 0;
    if (status != KILN_OK) {
        return status;
    }
    status = kn_cuda_program_function(program, entry, &function, diag);
    kn_cuda_leave((const kn_cuda_device *)opaque);
    /* The driver knows sizes but no kinds, and work-group memory is not a parameter at all: the
     * launch itself compares count and sizes. */
    return status == KILN_OK ? KILN_E_UNSUPPORTED : status;
}
