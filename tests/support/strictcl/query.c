/* See object.h and strictcl.h: what programs and kernels are asked. */
#include <stdio.h>
#include <string.h>

#include "support/strictcl/object.h"

cl_int strictcl_give(const void *answer, size_t length, size_t size, void *value, size_t *out_size)
{
    if (value != NULL && size < length) {
        return CL_INVALID_VALUE;
    }
    if (value != NULL) {
        memcpy(value, answer, length);
    }
    if (out_size != NULL) {
        *out_size = length;
    }
    return CL_SUCCESS;
}

static cl_int give_text(const char *text, size_t size, void *value, size_t *out_size)
{
    return strictcl_give(text, strlen(text) + 1, size, value, out_size);
}

static cl_int give_number(cl_uint number, size_t size, void *value, size_t *out_size)
{
    return strictcl_give(&number, sizeof(number), size, value, out_size);
}

/* --- programs --------------------------------------------------------------------------------- */

static size_t binary_length(const struct _cl_program *program, unsigned device)
{
    return program->built[device].status == CL_BUILD_SUCCESS
               ? sizeof(STRICTCL_BINARY) + program->length + (strictcl_how()->is_nvidia ? 2 : 0)
               : 0;
}

static cl_int give_binaries(const struct _cl_program *program, size_t size, void *value,
                            size_t *out_size)
{
    const cl_uint devices = strictcl_how()->devices;
    if (value != NULL && size < devices * sizeof(unsigned char *)) {
        return CL_INVALID_VALUE;
    }
    for (unsigned i = 0; value != NULL && i < devices; i++) {
        unsigned char *at = ((unsigned char **)value)[i];
        if (at != NULL && binary_length(program, i) > 0) {
            memcpy(at, STRICTCL_BINARY, sizeof(STRICTCL_BINARY) - 1);
            at[sizeof(STRICTCL_BINARY) - 1] =
                program->built[i].type == CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT ? 'C' : 'E';
            memcpy(at + sizeof(STRICTCL_BINARY), program->text, program->length);
            memset(at + sizeof(STRICTCL_BINARY) + program->length, 0,
                   strictcl_how()->is_nvidia ? 2 : 0);
        }
    }
    strictcl_counted()->read += value != NULL;
    if (out_size != NULL) {
        *out_size = devices * sizeof(unsigned char *);
    }
    return CL_SUCCESS;
}

static cl_int give_kernels(const struct _cl_program *program, cl_program_info name, size_t size,
                           void *value, size_t *out_size)
{
    char names[STRICTCL_NAMES][STRICTCL_NAME];
    char list[(STRICTCL_NAMES + 1) * STRICTCL_NAME] = "";
    const size_t count = strictcl_find_kernels(program->text, names);
    if (!strictcl_is_executable(program)) {
        return CL_INVALID_PROGRAM_EXECUTABLE;
    }
    strictcl_list_kernels(count, names);
    if (name == CL_PROGRAM_NUM_KERNELS) {
        return strictcl_give(&count, sizeof(count), size, value, out_size);
    }
    for (size_t i = 0; i < count; i++) {
        const size_t at = strlen(list);
        (void)snprintf(list + at, sizeof(list) - at, "%s%s", i > 0 ? ";" : "", names[i]);
    }
    return give_text(list, size, value, out_size);
}

static cl_int answer_program_info(const struct _cl_program *program, cl_program_info name,
                                  size_t size, void *value, size_t *out_size)
{
    const strictcl_manner *how = strictcl_how();
    const cl_device_id devices[STRICTCL_DEVICES] = {strictcl_device(0), strictcl_device(1)};
    const size_t sizes[STRICTCL_DEVICES] = {binary_length(program, 0), binary_length(program, 1)};
    const cl_context context = strictcl_context();
    const bool has_text = program->made == MADE_OF_SOURCE;
    switch (name) {
    case CL_PROGRAM_REFERENCE_COUNT:
        return give_number(program->references + (how->counts_kernels ? program->kernels : 0), size,
                           value, out_size);
    case CL_PROGRAM_CONTEXT:
        return strictcl_give(&context, sizeof(cl_context), size, value, out_size);
    case CL_PROGRAM_NUM_DEVICES:
        return give_number(how->devices, size, value, out_size);
    case CL_PROGRAM_DEVICES:
        return strictcl_give(devices, how->devices * sizeof(cl_device_id), size, value, out_size);
    case CL_PROGRAM_SOURCE:
        return give_text(has_text ? program->text : "", size, value, out_size);
    case CL_PROGRAM_IL:
        return strictcl_give(program->text, program->made == MADE_OF_IL ? program->length : 0, size,
                             value, out_size);
    case CL_PROGRAM_BINARY_SIZES:
        return strictcl_give(sizes, how->devices * sizeof(size_t), size, value, out_size);
    case CL_PROGRAM_BINARIES:
        return give_binaries(program, size, value, out_size);
    case CL_PROGRAM_NUM_KERNELS:
    case CL_PROGRAM_KERNEL_NAMES:
        return give_kernels(program, name, size, value, out_size);
    default:
        return CL_INVALID_VALUE;
    }
}

static cl_int CL_API_CALL get_program_info(cl_program program, cl_program_info name, size_t size,
                                           void *value, size_t *out_size)
{
    strictcl_lock();
    const cl_int code = strictcl_has_program(program)
                            ? answer_program_info(program, name, size, value, out_size)
                            : CL_INVALID_PROGRAM;
    strictcl_unlock();
    return code;
}

static cl_int answer_build_info(const struct _cl_program *program, unsigned device,
                                cl_program_build_info name, size_t size, void *value,
                                size_t *out_size)
{
    const strictcl_built *built = &program->built[device];
    const char *log = "";
    if (built->status == CL_BUILD_ERROR) {
        log = "1:1: it is broken\n";
    } else if (built->status == CL_BUILD_SUCCESS && program->made != MADE_OF_BINARY) {
        log = strstr(program->text, "warn") != NULL ? "1:1: a warning\n" : "built\n";
    }
    switch (name) {
    case CL_PROGRAM_BUILD_STATUS:
        return strictcl_give(&built->status, sizeof(built->status), size, value, out_size);
    case CL_PROGRAM_BUILD_OPTIONS:
        return give_text(built->options, size, value, out_size);
    case CL_PROGRAM_BUILD_LOG:
        return give_text(log, size, value, out_size);
    case CL_PROGRAM_BINARY_TYPE:
        return strictcl_give(&built->type, sizeof(built->type), size, value, out_size);
    default:
        return CL_INVALID_VALUE;
    }
}

static cl_int CL_API_CALL get_build_info(cl_program program, cl_device_id device,
                                         cl_program_build_info name, size_t size, void *value,
                                         size_t *out_size)
{
    cl_int code = CL_INVALID_PROGRAM;
    strictcl_lock();
    if (strictcl_has_program(program)) {
        const unsigned number = strictcl_number(device);
        code = number < STRICTCL_DEVICES
                   ? answer_build_info(program, number, name, size, value, out_size)
                   : CL_INVALID_DEVICE;
    }
    strictcl_unlock();
    return code;
}

/* --- kernels ---------------------------------------------------------------------------------- */

static cl_int answer_kernel_info(const struct _cl_kernel *kernel, cl_kernel_info name, size_t size,
                                 void *value, size_t *out_size)
{
    const cl_context context = strictcl_context();
    const bool is_loaded = kernel->program->made == MADE_OF_BINARY;
    switch (name) {
    case CL_KERNEL_FUNCTION_NAME:
        return give_text(kernel->name, size, value, out_size);
    case CL_KERNEL_NUM_ARGS:
        return give_number(1, size, value, out_size);
    case CL_KERNEL_REFERENCE_COUNT:
        return give_number(kernel->references, size, value, out_size);
    case CL_KERNEL_CONTEXT:
        return strictcl_give(&context, sizeof(cl_context), size, value, out_size);
    case CL_KERNEL_PROGRAM:
        return strictcl_give(&kernel->program, sizeof(cl_program), size, value, out_size);
    case CL_KERNEL_ATTRIBUTES:
        return give_text(is_loaded ? "" : "reqd_work_group_size(4,1,1)", size, value, out_size);
    default:
        return CL_INVALID_VALUE;
    }
}

static cl_int CL_API_CALL get_kernel_info(cl_kernel kernel, cl_kernel_info name, size_t size,
                                          void *value, size_t *out_size)
{
    strictcl_lock();
    const cl_int code = strictcl_has_kernel(kernel)
                            ? answer_kernel_info(kernel, name, size, value, out_size)
                            : CL_INVALID_KERNEL;
    strictcl_unlock();
    return code;
}

static cl_int answer_arg(const struct _cl_kernel *kernel, cl_uint index, cl_kernel_arg_info name,
                         size_t size, void *value, size_t *out_size)
{
    if (index > 0) {
        return CL_INVALID_ARG_INDEX;
    }
    if (kernel->program->made == MADE_OF_BINARY) {
        return CL_KERNEL_ARG_INFO_NOT_AVAILABLE;
    }
    return name == CL_KERNEL_ARG_NAME        ? give_text("out", size, value, out_size)
           : name == CL_KERNEL_ARG_TYPE_NAME ? give_text("int*", size, value, out_size)
                                             : CL_INVALID_VALUE;
}

static cl_int CL_API_CALL get_arg_info(cl_kernel kernel, cl_uint index, cl_kernel_arg_info name,
                                       size_t size, void *value, size_t *out_size)
{
    strictcl_lock();
    const cl_int code = strictcl_has_kernel(kernel)
                            ? answer_arg(kernel, index, name, size, value, out_size)
                            : CL_INVALID_KERNEL;
    strictcl_unlock();
    return code;
}

static cl_int answer_group(const struct _cl_kernel *kernel, cl_device_id device,
                           cl_kernel_work_group_info name, size_t size, void *value,
                           size_t *out_size)
{
    const size_t four = kernel->program->made == MADE_OF_BINARY ? 0 : 4;
    const size_t group[3] = {four, four > 0, four > 0};
    const size_t largest = 64;
    const unsigned number = device != NULL                ? strictcl_number(device)
                            : strictcl_how()->devices > 1 ? STRICTCL_DEVICES
                                                          : 0;
    if (number == STRICTCL_DEVICES || kernel->program->built[number].status != CL_BUILD_SUCCESS) {
        return CL_INVALID_DEVICE;
    }
    return name == CL_KERNEL_COMPILE_WORK_GROUP_SIZE
               ? strictcl_give(group, sizeof(group), size, value, out_size)
           : name == CL_KERNEL_WORK_GROUP_SIZE
               ? strictcl_give(&largest, sizeof(largest), size, value, out_size)
               : CL_INVALID_VALUE;
}

static cl_int CL_API_CALL get_group_info(cl_kernel kernel, cl_device_id device,
                                         cl_kernel_work_group_info name, size_t size, void *value,
                                         size_t *out_size)
{
    strictcl_lock();
    const cl_int code = strictcl_has_kernel(kernel)
                            ? answer_group(kernel, device, name, size, value, out_size)
                            : CL_INVALID_KERNEL;
    strictcl_unlock();
    return code;
}

void strictcl_add_queries(cl_icd_dispatch *table)
{
    table->clGetProgramInfo = get_program_info;
    table->clGetProgramBuildInfo = get_build_info;
    table->clGetKernelInfo = get_kernel_info;
    table->clGetKernelArgInfo = get_arg_info;
    table->clGetKernelWorkGroupInfo = get_group_info;
}
