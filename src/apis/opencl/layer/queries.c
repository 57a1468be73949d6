/* See queries.h. */
#include "apis/opencl/layer/queries.h"

#include <stdlib.h>
#include <string.h>

#include "apis/opencl/dropin/answers.h"
#include "apis/opencl/layer/build.h"

static kn_span answers_of_build(const kn_layer_build *build)
{
    return build != NULL && build->answers != NULL
               ? kn_span_of(kiln_blob_facts(build->answers), kiln_blob_facts_size(build->answers))
               : kn_span_of(NULL, 0);
}

/* --- programs --------------------------------------------------------------------------------- */

static bool has_devices_of(const kn_layer_program *program)
{
    cl_device_id devices[64];
    const kn_opencl_wish *wish = program->build->wish;
    size_t size = 0;
    return kn_layer_target()->clGetProgramInfo(program->handle, CL_PROGRAM_DEVICES, sizeof(devices),
                                               devices, &size) == CL_SUCCESS &&
           size == wish->device_count * sizeof(cl_device_id) &&
           memcmp((const void *)devices, (const void *)wish->devices, size) == 0;
}

/* The application's references, and one for each kernel where the driver counts those. */
static cl_int count_references(const kn_layer_program *program, size_t size, void *value,
                               size_t *out_size)
{
    cl_uint loaded = 1;
    cl_int code = kn_layer_target()->clGetProgramInfo(
        program->build->loaded, CL_PROGRAM_REFERENCE_COUNT, sizeof(loaded), &loaded, NULL);
    const cl_uint count =
        (cl_uint)kn_handles_count_references(program) + (loaded > 0 ? loaded - 1 : 0);
    return kn_answers_reply(code, kn_span_of(&count, sizeof(count)), size, value, out_size);
}

/* Of a program that was loaded from machine code the application gets the PTX, as from the driver:
 * it may keep it for another device, or read it. Empty where the driver answers. */
static kn_span ptx_of(const kn_layer_build *build)
{
    if (build == NULL || build->loaded == NULL || build->answers == NULL ||
        build->wish->device_count != 1) {
        return kn_span_of(NULL, 0);
    }
    size_t size = kiln_blob_size(build->answers), code_size = 0;
    const void *data = kiln_blob_data(build->answers);
    return kn_nvidia_split(data, &size, &code_size) != NULL ? kn_span_of(data, size)
                                                            : kn_span_of(NULL, 0);
}

static cl_int give_ptx(kn_span ptx, cl_program_info name, size_t size, void *value,
                       size_t *out_size)
{
    unsigned char *room = NULL;
    if (name == CL_PROGRAM_BINARY_SIZES) {
        return kn_answers_reply(CL_SUCCESS, kn_span_of(&ptx.length, sizeof(ptx.length)), size,
                                value, out_size);
    }
    if (value != NULL && size < sizeof(room)) {
        return CL_INVALID_VALUE;
    }
    if (value != NULL) {
        memcpy(&room, value, sizeof(room));
    }
    if (room != NULL) {
        memcpy(room, ptx.data, ptx.length);
    }
    if (out_size != NULL) {
        *out_size = sizeof(room);
    }
    return CL_SUCCESS;
}

/* The program that the driver is to be asked about. */
static cl_program choose_asked(kn_layer_program *program, cl_program_info name)
{
    const kn_layer_build *build = program->build;
    switch (name) {
    case CL_PROGRAM_REFERENCE_COUNT:
    case CL_PROGRAM_CONTEXT:
    case CL_PROGRAM_NUM_DEVICES:
    case CL_PROGRAM_DEVICES:
    case CL_PROGRAM_SOURCE:
    case CL_PROGRAM_IL:
        return program->handle;
    case CL_PROGRAM_BINARY_SIZES:
    case CL_PROGRAM_BINARIES:
        if ((build->deferred || !has_devices_of(program)) && kn_layer_build_catch_up(program)) {
            return program->handle;
        }
        break;
    default:
        if (build->deferred) {
            (void)kn_layer_build_catch_up(program);
        }
        break;
    }
    return program->build != NULL && program->build->loaded != NULL ? program->build->loaded
                                                                    : program->handle;
}

static cl_int ask_program(kn_layer_program *program, cl_program_info name, size_t size, void *value,
                          size_t *out_size)
{
    cl_int code = CL_SUCCESS;
    kn_span answer;
    const kn_layer_build *build = program->build;
    const kn_answer_query query = {KN_ANSWER_PROGRAM, 0, 0, name};
    cl_program asked = program->handle;
    if (build != NULL && (build->loaded != NULL || build->deferred)) {
        if (name == CL_PROGRAM_REFERENCE_COUNT && build->loaded != NULL) {
            return count_references(program, size, value, out_size);
        }
        if (kn_answers_find(answers_of_build(build), &query, &code, &answer)) {
            return kn_answers_reply(code, answer, size, value, out_size);
        }
        asked = choose_asked(program, name);
        const kn_span ptx = ptx_of(program->build); /* which may be another one now */
        if (ptx.length > 0 && asked != program->handle &&
            (name == CL_PROGRAM_BINARY_SIZES || name == CL_PROGRAM_BINARIES)) {
            return give_ptx(ptx, name, size, value, out_size);
        }
    }
    return kn_layer_target()->clGetProgramInfo(asked, name, size, value, out_size);
}

cl_int CL_API_CALL kn_layer_program_info(cl_program handle, cl_program_info name, size_t size,
                                         void *value, size_t *out_size)
{
    kn_layer_program *program = kn_handles_pin(handle);
    if (program == NULL) {
        return kn_layer_target()->clGetProgramInfo(handle, name, size, value, out_size);
    }
    kn_mutex_lock(&program->lock);
    const cl_int code = ask_program(program, name, size, value, out_size);
    kn_mutex_unlock(&program->lock);
    kn_handles_unpin(program);
    return code;
}

/* --- builds ----------------------------------------------------------------------------------- */

static cl_int ask_build(kn_layer_program *program, cl_device_id device, cl_program_build_info name,
                        size_t size, void *value, size_t *out_size)
{
    kn_layer_build *build = program->build;
    cl_program asked = program->handle;
    kn_span answer;
    cl_int code = CL_SUCCESS;
    kn_answer_query query = {KN_ANSWER_BUILD, 0, 0, name};
    if (build != NULL && build->answers != NULL &&
        kn_opencl_wish_find(build->wish, device, &query.first)) {
        const bool linked = build->loaded == NULL && !build->unit;
        const char *options = linked ? build->wish->link_options : build->wish->texts[0].options;
        if (name == CL_PROGRAM_BUILD_OPTIONS) { /* which drivers may forget with a binary */
            return kn_answers_reply(CL_SUCCESS, kn_span_of(options, strlen(options) + 1), size,
                                    value, out_size);
        }
        if (kn_answers_find(answers_of_build(build), &query, &code, &answer)) {
            return kn_answers_reply(code, answer, size, value, out_size);
        }
        if (build->deferred) {
            (void)kn_layer_build_catch_up(program);
        }
        asked = program->build->loaded != NULL ? program->build->loaded : asked;
    }
    return kn_layer_target()->clGetProgramBuildInfo(asked, device, name, size, value, out_size);
}

cl_int CL_API_CALL kn_layer_build_info(cl_program handle, cl_device_id device,
                                       cl_program_build_info name, size_t size, void *value,
                                       size_t *out_size)
{
    kn_layer_program *program = kn_handles_pin(handle);
    if (program == NULL) {
        return kn_layer_target()->clGetProgramBuildInfo(handle, device, name, size, value,
                                                        out_size);
    }
    kn_mutex_lock(&program->lock);
    const cl_int code = ask_build(program, device, name, size, value, out_size);
    kn_mutex_unlock(&program->lock);
    kn_handles_unpin(program);
    return code;
}

/* --- kernels ---------------------------------------------------------------------------------- */

/* What the cache answers for, and what is read when its last kernel is released. */
static bool watches_kernels(const kn_layer_build *build)
{
    return build != NULL &&
           (build->loaded != NULL || build->answers != NULL || build->recipe != NULL);
}

static cl_program program_for_kernels(const kn_layer_program *program)
{
    return program->build != NULL && program->build->loaded != NULL ? program->build->loaded
                                                                    : program->handle;
}

cl_kernel kn_layer_create_kernel(kn_layer_program *program, const char *name, cl_int *code)
{
    const cl_icd_dispatch *target = kn_layer_target();
    kn_mutex_lock(&program->lock);
    cl_kernel kernel = target->clCreateKernel(program_for_kernels(program), name, code);
    if (kernel != NULL && watches_kernels(program->build) &&
        !kn_handles_add_kernel(kernel, program)) {
        (void)target->clReleaseKernel(kernel);
        kernel = NULL;
        if (code != NULL) {
            *code = CL_OUT_OF_HOST_MEMORY;
        }
    }
    kn_mutex_unlock(&program->lock);
    return kernel;
}

cl_int kn_layer_create_kernels(kn_layer_program *program, cl_uint entries, cl_kernel *kernels,
                               cl_uint *count)
{
    cl_uint made = 0;
    kn_mutex_lock(&program->lock);
    const cl_int code = kn_layer_target()->clCreateKernelsInProgram(program_for_kernels(program),
                                                                    entries, kernels, &made);
    if (code == CL_SUCCESS && count != NULL) {
        *count = made;
    }
    for (cl_uint i = 0;
         code == CL_SUCCESS && kernels != NULL && i < made && watches_kernels(program->build);
         i++) {
        (void)kn_handles_add_kernel(kernels[i], program); /* without memory it is the driver's */
    }
    kn_mutex_unlock(&program->lock);
    return code;
}

/* The program of a kernel, locked; NULL: the driver is to be asked. */
static kn_layer_program *lock_kernel(cl_kernel kernel)
{
    kn_layer_program *program = kn_handles_pin_kernel(kernel);
    if (program != NULL) {
        kn_mutex_lock(&program->lock);
    }
    return program;
}

static void unlock_kernel(kn_layer_program *program)
{
    if (program != NULL) {
        kn_mutex_unlock(&program->lock);
        kn_handles_unpin(program);
    }
}

/* The kernel's number in the answers of its program; false where the driver is to be asked. */
static bool find_answered(cl_kernel kernel, kn_span answers, uint32_t *out_kernel)
{
    size_t size = 0;
    if (answers.length == 0 ||
        kn_layer_target()->clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, 0, NULL, &size) !=
            CL_SUCCESS ||
        size == 0 || size > answers.length) {
        return false;
    }
    char *name = calloc(1, size + 1);
    const bool found = name != NULL &&
                       kn_layer_target()->clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, size,
                                                          name, NULL) == CL_SUCCESS &&
                       kn_answers_kernel(answers, name, out_kernel);
    free(name);
    return found;
}

/* An answer that the cache has. The program is locked. */
static bool answer_kernel(const kn_layer_program *program, cl_kernel kernel, kn_answer_query *query,
                          cl_int *out_code, kn_span *out_answer)
{
    const kn_span answers = answers_of_build(program->build);
    return find_answered(kernel, answers, &query->first) &&
           kn_answers_find(answers, query, out_code, out_answer);
}

cl_int CL_API_CALL kn_layer_kernel_info(cl_kernel kernel, cl_kernel_info name, size_t size,
                                        void *value, size_t *out_size)
{
    const bool ours = name == CL_KERNEL_PROGRAM || name == CL_KERNEL_ATTRIBUTES;
    kn_layer_program *program = ours ? lock_kernel(kernel) : NULL;
    kn_answer_query query = {KN_ANSWER_KERNEL, 0, 0, name};
    cl_int code = CL_SUCCESS;
    kn_span answer = kn_span_of(NULL, 0);
    bool answered = false;
    if (program != NULL && name == CL_KERNEL_PROGRAM) {
        answer = kn_span_of(&program->handle, sizeof(cl_program));
        answered = true;
    } else if (program != NULL) {
        answered = answer_kernel(program, kernel, &query, &code, &answer);
    }
    code = answered ? kn_answers_reply(code, answer, size, value, out_size)
                    : kn_layer_target()->clGetKernelInfo(kernel, name, size, value, out_size);
    unlock_kernel(program);
    return code;
}

cl_int CL_API_CALL kn_layer_kernel_arg_info(cl_kernel kernel, cl_uint index,
                                            cl_kernel_arg_info name, size_t size, void *value,
                                            size_t *out_size)
{
    kn_layer_program *program = lock_kernel(kernel);
    kn_answer_query query = {KN_ANSWER_ARG, 0, index, name};
    cl_int code = CL_SUCCESS;
    kn_span answer;
    if (program != NULL && answer_kernel(program, kernel, &query, &code, &answer)) {
        code = kn_answers_reply(code, answer, size, value, out_size);
    } else {
        code = kn_layer_target()->clGetKernelArgInfo(kernel, index, name, size, value, out_size);
    }
    unlock_kernel(program);
    return code;
}

cl_int CL_API_CALL kn_layer_kernel_group_info(cl_kernel kernel, cl_device_id device,
                                              cl_kernel_work_group_info name, size_t size,
                                              void *value, size_t *out_size)
{
    kn_layer_program *program =
        name == CL_KERNEL_COMPILE_WORK_GROUP_SIZE ? lock_kernel(kernel) : NULL;
    kn_answer_query query = {KN_ANSWER_GROUP, 0, 0, name};
    const kn_opencl_wish *wish =
        program != NULL && program->build != NULL ? program->build->wish : NULL;
    cl_int code = CL_SUCCESS;
    kn_span answer;
    const bool meant =
        wish != NULL && (kn_opencl_wish_find(wish, device, &query.second) ||
                         (device == NULL && wish->device_count == 1 && has_devices_of(program)));
    if (meant && answer_kernel(program, kernel, &query, &code, &answer)) {
        code = kn_answers_reply(code, answer, size, value, out_size);
    } else {
        code = kn_layer_target()->clGetKernelWorkGroupInfo(kernel, device, name, size, value,
                                                           out_size);
    }
    unlock_kernel(program);
    return code;
}
