/* The layer's core: the functions that stand in for OpenCL's. A handle that the layer does not know
 * is the driver's, and so is its answer. */
#include <stdlib.h>
#include <string.h>

#include "apis/opencl/layer/build.h"
#include "apis/opencl/layer/queries.h"
#include "interpose/uncancelled.h"
#include "kiln/export.h"

static struct {
    const cl_icd_dispatch *target; /* set before the table is given out */
    kn_opencl_api api;
    _Atomic bool
        plain; /* the application has asked for functions that the layer cannot stand in for */
} layer_state;

const cl_icd_dispatch *kn_layer_target(void)
{
    return layer_state.target;
}

const kn_opencl_api *kn_layer_api(void)
{
    return &layer_state.api;
}

/* --- programs --------------------------------------------------------------------------------- */

static cl_program CL_API_CALL call_create_source(cl_context context, cl_uint count,
                                                 const char **strings, const size_t *lengths,
                                                 cl_int *code)
{
    cl_program program =
        layer_state.target->clCreateProgramWithSource(context, count, strings, lengths, code);
    if (program != NULL && !layer_state.plain) {
        kn_handles_add_program(program, false);
    }
    return program;
}

static cl_program CL_API_CALL call_create_il(cl_context context, const void *il, size_t length,
                                             cl_int *code)
{
    cl_program program = layer_state.target->clCreateProgramWithIL(context, il, length, code);
    if (program != NULL) {
        kn_handles_add_program(program, true);
    }
    return program;
}

static cl_int CL_API_CALL call_retain_program(cl_program program)
{
    if (kn_handles_retain_program(program) == KN_HANDLES_DONE) {
        return CL_SUCCESS;
    }
    return layer_state.target->clRetainProgram(program);
}

/* The kernels of what was loaded do not keep the application's program, but it must stay. */
static bool keeps_program(const kn_layer_program *program)
{
    return program->build != NULL && program->build->loaded != NULL;
}

/* Nothing refers to it any more. The program itself is still there. */
static void end_program(kn_layer_program *program)
{
    KN_UNCANCELLED;
    kn_mutex_lock(&program->lock);
    kn_layer_capture_program(program);
    kn_layer_build_forget(program);
    kn_mutex_unlock(&program->lock);
}

static cl_int CL_API_CALL call_release_program(cl_program handle)
{
    kn_layer_program *program = NULL;
    const kn_handles_verdict verdict = kn_handles_release_program(handle, keeps_program, &program);
    if (verdict == KN_HANDLES_DONE) {
        return CL_SUCCESS;
    }
    if (verdict == KN_HANDLES_LAST) {
        end_program(program);
        kn_handles_unpin(program);
    }
    return layer_state.target->clReleaseProgram(handle);
}

static cl_int build_handle(cl_program handle, bool compile, const kn_layer_arguments *arguments)
{
    KN_UNCANCELLED;
    kn_layer_program *program = kn_handles_pin(handle);
    if (program == NULL) {
        return kn_layer_build_call(handle, compile, arguments, arguments->notify, arguments->user);
    }
    bool calls_back = false;
    kn_mutex_lock(&program->lock);
    const cl_int code = kn_layer_build_program(program, compile, arguments, &calls_back);
    kn_mutex_unlock(&program->lock);
    if (calls_back) {
        arguments->notify(handle, arguments->user);
    }
    kn_handles_unpin(program);
    return code;
}

static cl_int CL_API_CALL call_build(cl_program handle, cl_uint count, const cl_device_id *devices,
                                     const char *options, kn_cl_notify *notify, void *user)
{
    const kn_layer_arguments arguments = {count, devices, options, notify, user, 0, NULL, NULL};
    return build_handle(handle, false, &arguments);
}

static cl_int CL_API_CALL call_compile(cl_program handle, cl_uint count,
                                       const cl_device_id *devices, const char *options,
                                       cl_uint header_count, const cl_program *headers,
                                       const char **names, kn_cl_notify *notify, void *user)
{
    const kn_layer_arguments arguments = {count, devices,      options, notify,
                                          user,  header_count, headers, names};
    return build_handle(handle, true, &arguments);
}

static cl_program CL_API_CALL call_link(cl_context context, cl_uint count,
                                        const cl_device_id *devices, const char *options,
                                        cl_uint program_count, const cl_program *programs,
                                        kn_cl_notify *notify, void *user, cl_int *code)
{
    KN_UNCANCELLED;
    const kn_layer_arguments arguments = {count, devices,       options,  notify,
                                          user,  program_count, programs, NULL};
    return kn_layer_link_program(context, &arguments, code);
}

/* --- kernels ---------------------------------------------------------------------------------- */

static cl_kernel CL_API_CALL call_create_kernel(cl_program handle, const char *name, cl_int *code)
{
    KN_UNCANCELLED;
    kn_layer_program *program = kn_handles_pin(handle);
    if (program == NULL) {
        return layer_state.target->clCreateKernel(handle, name, code);
    }
    cl_kernel kernel = kn_layer_create_kernel(program, name, code);
    kn_handles_unpin(program);
    return kernel;
}

static cl_int CL_API_CALL call_create_kernels(cl_program handle, cl_uint entries,
                                              cl_kernel *kernels, cl_uint *count)
{
    KN_UNCANCELLED;
    kn_layer_program *program = kn_handles_pin(handle);
    if (program == NULL) {
        return layer_state.target->clCreateKernelsInProgram(handle, entries, kernels, count);
    }
    const cl_int code = kn_layer_create_kernels(program, entries, kernels, count);
    kn_handles_unpin(program);
    return code;
}

static cl_kernel CL_API_CALL call_clone_kernel(cl_kernel kernel, cl_int *code)
{
    kn_layer_program *program = kn_handles_pin_kernel(kernel);
    cl_kernel clone = layer_state.target->clCloneKernel(kernel, code);
    if (program != NULL && clone != NULL) {
        (void)kn_handles_add_kernel(clone, program); /* without memory it is the driver's alone */
    }
    kn_handles_unpin(program);
    return clone;
}

static cl_int CL_API_CALL call_retain_kernel(cl_kernel kernel)
{
    kn_handles_retain_kernel(kernel);
    return layer_state.target->clRetainKernel(kernel);
}

static cl_int CL_API_CALL call_release_kernel(cl_kernel kernel)
{
    kn_layer_program *program = NULL;
    const kn_handles_verdict verdict = kn_handles_release_kernel(kernel, &program);
    const bool held = verdict == KN_HANDLES_LAST && program->held;
    if (verdict == KN_HANDLES_LAST && !held) {
        end_program(program); /* which the driver drops with this kernel */
    }
    const cl_int code = layer_state.target->clReleaseKernel(kernel);
    if (held) {
        end_program(program);
        (void)layer_state.target->clReleaseProgram(program->handle);
    }
    kn_handles_unpin(program);
    return code;
}

/* --- launches --------------------------------------------------------------------------------- */

static cl_int CL_API_CALL call_finish(cl_command_queue queue)
{
    const cl_int code = layer_state.target->clFinish(queue);
    kn_layer_capture_waited();
    return code;
}

static cl_int CL_API_CALL call_wait(cl_uint count, const cl_event *events)
{
    const cl_int code = layer_state.target->clWaitForEvents(count, events);
    kn_layer_capture_waited();
    return code;
}

static cl_int CL_API_CALL call_read(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                    size_t offset, size_t size, void *data, cl_uint count,
                                    const cl_event *wait, cl_event *event)
{
    const cl_int code = layer_state.target->clEnqueueReadBuffer(queue, buffer, blocking, offset,
                                                                size, data, count, wait, event);
    if (blocking == CL_TRUE) {
        kn_layer_capture_waited();
    }
    return code;
}

/* --- functions of extensions ------------------------------------------------------------------ */

/* They take programs and go past every layer: what the application makes from now on is left to the
 * driver. */
static void watch_extension(const char *name)
{
    static const char *const takers[] = {"clGetDeviceFunctionPointerINTEL",
                                         "clGetDeviceGlobalVariablePointerINTEL"};
    for (size_t i = 0; name != NULL && i < sizeof(takers) / sizeof(*takers); i++) {
        if (strcmp(name, takers[i]) == 0) {
            layer_state.plain = true;
        }
    }
}

static void *CL_API_CALL call_extension_of(cl_platform_id platform, const char *name)
{
    watch_extension(name);
    return layer_state.target->clGetExtensionFunctionAddressForPlatform(platform, name);
}

static void *CL_API_CALL call_extension(const char *name)
{
    watch_extension(name);
    return layer_state.target->clGetExtensionFunctionAddress(name);
}

/* --- the table -------------------------------------------------------------------------------- */

/* Nothing of the loader's, and of the drivers that it opened, is there after this. */
static void leave_layer(void)
{
    kn_layer_capture_rest();
    kn_handles_clear();
    layer_state.target = NULL;
}

static const kn_cl_calls layer_calls = {
    .clCreateProgramWithSource = call_create_source,
    .clCreateProgramWithIL = call_create_il,
    .clRetainProgram = call_retain_program,
    .clReleaseProgram = call_release_program,
    .clBuildProgram = call_build,
    .clCompileProgram = call_compile,
    .clLinkProgram = call_link,
    .clGetProgramInfo = kn_layer_program_info,
    .clGetProgramBuildInfo = kn_layer_build_info,
    .clCreateKernel = call_create_kernel,
    .clCreateKernelsInProgram = call_create_kernels,
    .clCloneKernel = call_clone_kernel,
    .clRetainKernel = call_retain_kernel,
    .clReleaseKernel = call_release_kernel,
    .clGetKernelInfo = kn_layer_kernel_info,
    .clGetKernelArgInfo = kn_layer_kernel_arg_info,
    .clGetKernelWorkGroupInfo = kn_layer_kernel_group_info,
    .clFinish = call_finish,
    .clWaitForEvents = call_wait,
    .clEnqueueReadBuffer = call_read,
    .clGetExtensionFunctionAddressForPlatform = call_extension_of,
    .clGetExtensionFunctionAddress = call_extension,
    .leave = leave_layer,
};

/* False where the loader lacks what kiln needs. */
static bool bind_api(const cl_icd_dispatch *target)
{
    bool whole = true;
#define X(since, need, result, name, args)                                                         \
    layer_state.api.name = target->name;                                                           \
    whole = whole && ((need) != KN_REQUIRED || target->name != NULL);
#include "apis/opencl/backend/opencl.def"
#undef X
    return whole;
}

KILN_API const kn_cl_calls *kn_interpose_opencl(const cl_icd_dispatch *target);
const kn_cl_calls *kn_interpose_opencl(const cl_icd_dispatch *target)
{
    if (!bind_api(target) || target->clCompileProgram == NULL || target->clLinkProgram == NULL) {
        return NULL;
    }
    layer_state.target = target;
    layer_state.plain = false;
    return &layer_calls;
}
