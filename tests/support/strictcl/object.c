/* See object.h and strictcl.h: tables of objects, the platform, and kernels. */
#include "support/strictcl/object.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apis/opencl/backend/symbols.h"

struct _cl_device_id {
    unsigned number;
};
struct _cl_context {
    int mark;
};
struct _cl_platform_id {
    int mark;
};

static struct {
    pthread_mutex_t lock;
    strictcl_manner manner;
    strictcl_counts counts;
    struct _cl_program programs[STRICTCL_PROGRAMS];
    struct _cl_kernel kernels[STRICTCL_KERNELS];
    size_t program_hint, kernel_hint; /* released last: its address comes again */
} driver = {.lock = PTHREAD_MUTEX_INITIALIZER};
static struct _cl_device_id all_devices[STRICTCL_DEVICES] = {{0}, {1}};
static struct _cl_context only_context;
static struct _cl_platform_id only_platform;

void strictcl_lock(void)
{
    (void)pthread_mutex_lock(&driver.lock);
}

void strictcl_unlock(void)
{
    (void)pthread_mutex_unlock(&driver.lock);
}

const strictcl_manner *strictcl_how(void)
{
    return &driver.manner;
}

strictcl_counts *strictcl_counted(void)
{
    return &driver.counts;
}

void strictcl_open(const strictcl_manner *manner)
{
    strictcl_settle();
    strictcl_lock();
    driver.manner = *manner;
    driver.counts = (strictcl_counts){0};
    memset(driver.programs, 0, sizeof(driver.programs));
    memset(driver.kernels, 0, sizeof(driver.kernels));
    driver.program_hint = driver.kernel_hint = 0;
    strictcl_unlock();
}

strictcl_counts strictcl_count(void)
{
    strictcl_lock();
    strictcl_counts counts = driver.counts;
    strictcl_unlock();
    return counts;
}

cl_context strictcl_context(void)
{
    return &only_context;
}

cl_device_id strictcl_device(unsigned index)
{
    return &all_devices[index % STRICTCL_DEVICES];
}

/* --- objects ---------------------------------------------------------------------------------- */

bool strictcl_has_program(cl_program program)
{
    const bool ours = program >= driver.programs && program < driver.programs + STRICTCL_PROGRAMS;
    const bool alive = ours && program->alive;
    driver.counts.strangers += !alive;
    return alive;
}

bool strictcl_has_kernel(cl_kernel kernel)
{
    const bool ours = kernel >= driver.kernels && kernel < driver.kernels + STRICTCL_KERNELS;
    const bool alive = ours && kernel->alive;
    driver.counts.strangers += !alive;
    return alive;
}

cl_program strictcl_new_program(strictcl_made made, const void *text, size_t length)
{
    for (size_t i = 0; i < STRICTCL_PROGRAMS && length < STRICTCL_TEXT; i++) {
        cl_program program = &driver.programs[(driver.program_hint + i) % STRICTCL_PROGRAMS];
        if (!program->alive) {
            *program = (struct _cl_program){
                .alive = true, .made = made, .references = 1, .length = length};
            memcpy(program->text, text, length);
            for (unsigned k = 0; k < STRICTCL_DEVICES; k++) {
                program->built[k].status = CL_BUILD_NONE;
            }
            driver.counts.alive++;
            return program;
        }
    }
    return NULL;
}

cl_kernel strictcl_new_kernel(cl_program program, const char *name)
{
    for (size_t i = 0; i < STRICTCL_KERNELS; i++) {
        cl_kernel kernel = &driver.kernels[(driver.kernel_hint + i) % STRICTCL_KERNELS];
        if (!kernel->alive) {
            *kernel = (struct _cl_kernel){.alive = true, .references = 1, .program = program};
            (void)snprintf(kernel->name, sizeof(kernel->name), "%s", name);
            program->kernels++;
            driver.counts.alive++;
            return kernel;
        }
    }
    return NULL;
}

void strictcl_drop_program(cl_program program)
{
    if (program->references == 0 && program->kernels == 0) {
        program->alive = false;
        driver.program_hint = (size_t)(program - driver.programs);
        driver.counts.alive--;
    }
}

unsigned strictcl_number(cl_device_id device)
{
    for (unsigned i = 0; i < driver.manner.devices; i++) {
        if (device == &all_devices[i]) {
            return i;
        }
    }
    return STRICTCL_DEVICES;
}

size_t strictcl_find_kernels(const char *text, char names[STRICTCL_NAMES][STRICTCL_NAME])
{
    static const char word[] = "__kernel ";
    size_t count = 0;
    while (count < STRICTCL_NAMES && (text = strstr(text, word)) != NULL) {
        text += sizeof(word) - 1;
        (void)snprintf(names[count++], STRICTCL_NAME, "%.*s", (int)strcspn(text, "( \n"), text);
    }
    return count;
}

void strictcl_list_kernels(size_t count, char names[STRICTCL_NAMES][STRICTCL_NAME])
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        bytes += strlen(names[i]) + 1;
    }
    if (driver.manner.is_nvidia && bytes > 256) {
        abort();
    }
}

bool strictcl_is_executable(const struct _cl_program *program)
{
    for (unsigned i = 0; i < STRICTCL_DEVICES; i++) {
        if (program->built[i].status == CL_BUILD_SUCCESS &&
            program->built[i].type == CL_PROGRAM_BINARY_TYPE_EXECUTABLE) {
            return true;
        }
    }
    return false;
}

/* --- kernels ---------------------------------------------------------------------------------- */

static cl_int set_code(cl_int *code, cl_int value)
{
    if (code != NULL) {
        *code = value;
    }
    return value;
}

static cl_kernel CL_API_CALL create_kernel(cl_program program, const char *name, cl_int *code)
{
    char names[STRICTCL_NAMES][STRICTCL_NAME];
    cl_kernel kernel = NULL;
    strictcl_lock();
    if (!strictcl_has_program(program)) {
        (void)set_code(code, CL_INVALID_PROGRAM);
    } else if (name == NULL) {
        (void)set_code(code, CL_INVALID_VALUE);
    } else if (!strictcl_is_executable(program)) {
        (void)set_code(code, CL_INVALID_PROGRAM_EXECUTABLE);
    } else {
        const size_t count = strictcl_find_kernels(program->text, names);
        (void)set_code(code, CL_INVALID_KERNEL_NAME);
        for (size_t i = 0; i < count && kernel == NULL; i++) {
            if (strcmp(names[i], name) == 0) {
                kernel = strictcl_new_kernel(program, name);
                (void)set_code(code, kernel != NULL ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY);
            }
        }
    }
    strictcl_unlock();
    return kernel;
}

static cl_int CL_API_CALL create_kernels(cl_program program, cl_uint entries, cl_kernel *kernels,
                                         cl_uint *out_count)
{
    char names[STRICTCL_NAMES][STRICTCL_NAME];
    cl_int code = CL_SUCCESS;
    strictcl_lock();
    if (!strictcl_has_program(program)) {
        code = CL_INVALID_PROGRAM;
    } else if (!strictcl_is_executable(program)) {
        code = CL_INVALID_PROGRAM_EXECUTABLE;
    } else {
        const size_t count = strictcl_find_kernels(program->text, names);
        strictcl_list_kernels(count, names);
        code = kernels != NULL && entries < count ? CL_INVALID_VALUE : CL_SUCCESS;
        for (size_t i = 0; code == CL_SUCCESS && kernels != NULL && i < count; i++) {
            kernels[i] = strictcl_new_kernel(program, names[i]);
        }
        if (code == CL_SUCCESS && out_count != NULL) {
            *out_count = (cl_uint)count;
        }
    }
    strictcl_unlock();
    return code;
}

static cl_kernel CL_API_CALL clone_kernel(cl_kernel kernel, cl_int *code)
{
    strictcl_lock();
    const bool known = strictcl_has_kernel(kernel);
    cl_kernel clone = known ? strictcl_new_kernel(kernel->program, kernel->name) : NULL;
    (void)set_code(code, clone != NULL ? CL_SUCCESS : CL_INVALID_KERNEL);
    strictcl_unlock();
    return clone;
}

static cl_int CL_API_CALL retain_kernel(cl_kernel kernel)
{
    strictcl_lock();
    const bool known = strictcl_has_kernel(kernel);
    if (known) {
        kernel->references++;
    }
    strictcl_unlock();
    return known ? CL_SUCCESS : CL_INVALID_KERNEL;
}

static cl_int CL_API_CALL release_kernel(cl_kernel kernel)
{
    strictcl_lock();
    const bool known = strictcl_has_kernel(kernel);
    if (known && --kernel->references == 0) {
        kernel->alive = false;
        driver.kernel_hint = (size_t)(kernel - driver.kernels);
        driver.counts.alive--;
        kernel->program->kernels--;
        strictcl_drop_program(kernel->program);
    }
    strictcl_unlock();
    return known ? CL_SUCCESS : CL_INVALID_KERNEL;
}

void strictcl_add_kernels(cl_icd_dispatch *table)
{
    table->clCreateKernel = create_kernel;
    table->clCreateKernelsInProgram = create_kernels;
    table->clCloneKernel = clone_kernel;
    table->clRetainKernel = retain_kernel;
    table->clReleaseKernel = release_kernel;
}

/* --- the platform ----------------------------------------------------------------------------- */

static cl_int CL_API_CALL get_platform_info(cl_platform_id platform, cl_platform_info name,
                                            size_t size, void *value, size_t *out_size)
{
    const char *text = "";
    (void)platform;
    if (name == CL_PLATFORM_NAME) {
        text = driver.manner.is_pocl     ? "Portable Computing Language"
               : driver.manner.is_nvidia ? "NVIDIA CUDA"
                                         : "Strict Platform";
    } else if (name == CL_PLATFORM_VERSION) {
        text = "OpenCL 3.0 Strict";
    }
    return strictcl_give(text, strlen(text) + 1, size, value, out_size);
}

static cl_int CL_API_CALL get_device_info(cl_device_id device, cl_device_info name, size_t size,
                                          void *value, size_t *out_size)
{
    char text[32] = "";
    const cl_platform_id platform = &only_platform;
    const cl_uint capability[2] = {9, 0}; /* CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV, MINOR_NV */
    if (driver.manner.is_nvidia && (name == 0x4000 || name == 0x4001)) {
        return strictcl_give(&capability[name - 0x4000], sizeof(cl_uint), size, value, out_size);
    }
    switch (name) {
    case CL_DEVICE_PLATFORM:
        return strictcl_give(&platform, sizeof(cl_platform_id), size, value, out_size);
    case CL_DEVICE_NAME:
        (void)snprintf(text, sizeof(text), "Strict Device %u", device->number);
        break;
    case CL_DEVICE_VERSION:
        (void)snprintf(text, sizeof(text), "OpenCL 3.0 Strict");
        break;
    case CL_DEVICE_EXTENSIONS:
    case CL_DEVICE_VENDOR:
    case CL_DRIVER_VERSION:
        break;
    default:
        return CL_INVALID_VALUE;
    }
    return strictcl_give(text, strlen(text) + 1, size, value, out_size);
}

static cl_int CL_API_CALL get_context_info(cl_context context, cl_context_info name, size_t size,
                                           void *value, size_t *out_size)
{
    const cl_device_id devices[STRICTCL_DEVICES] = {&all_devices[0], &all_devices[1]};
    (void)context;
    return name == CL_CONTEXT_DEVICES
               ? strictcl_give(devices, driver.manner.devices * sizeof(cl_device_id), size, value,
                               out_size)
               : CL_INVALID_VALUE;
}

static void *CL_API_CALL get_extension(cl_platform_id platform, const char *name)
{
    (void)platform;
    (void)name;
    return NULL;
}

/* What a layer wants to see in a driver, and does not call here. */
static cl_int never_called(void)
{
    return CL_INVALID_OPERATION;
}

static cl_icd_dispatch table;
static pthread_once_t table_made = PTHREAD_ONCE_INIT;

static void make_table(void)
{
    cl_int (*rest)(void) = never_called;
    strictcl_add_programs(&table);
    strictcl_add_kernels(&table);
    strictcl_add_queries(&table);
    table.clGetPlatformInfo = get_platform_info;
    table.clGetDeviceInfo = get_device_info;
    table.clGetContextInfo = get_context_info;
    table.clGetExtensionFunctionAddressForPlatform = get_extension;
#define X(since, need, result, name, args)                                                         \
    if (table.name == NULL) {                                                                      \
        memcpy((void *)&table.name, (const void *)&rest, sizeof(rest));                            \
    }
#include "apis/opencl/backend/opencl.def"
#undef X
}

const cl_icd_dispatch *strictcl_dispatch(void)
{
    (void)pthread_once(&table_made, make_table);
    return &table;
}
