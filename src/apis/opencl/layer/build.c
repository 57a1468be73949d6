/* See build.h: clBuildProgram and clCompileProgram. What looks wrong goes to the driver, whose
 * error is then the one that the application gets. */
#include "apis/opencl/layer/build.h"

#include <stdlib.h>
#include <string.h>

#include "apis/opencl/dropin/make.h"
#include "apis/opencl/layer/notify.h"
#include "base/checked.h"
#include "sys/clock.h"

void kn_layer_build_destroy(kn_layer_build *build)
{
    if (build != NULL) {
        kiln_blob_release(build->answers);
        kiln_recipe_destroy(build->recipe);
        kn_opencl_wish_release(build->wish);
        free(build);
    }
}

static void drop_build(kn_layer_build *build)
{
    if (build != NULL && build->loaded != NULL) {
        (void)kn_layer_target()->clReleaseProgram(build->loaded);
    }
    kn_layer_build_destroy(build);
}

void kn_layer_build_forget(kn_layer_program *program)
{
    kn_layer_build *build = program->build;
    program->build = NULL;
    drop_build(build);
}

/* The devices that are meant; 0: the driver is to say what is wrong with them. */
static size_t choose_devices(cl_program program, const kn_layer_arguments *a,
                             cl_device_id out_devices[DEVICES_LIMIT])
{
    cl_device_id all[DEVICES_LIMIT];
    size_t size = 0;
    if ((a->count == 0) != (a->devices == NULL) || (a->notify == NULL && a->user != NULL) ||
        a->count > DEVICES_LIMIT ||
        kn_layer_target()->clGetProgramInfo(program, CL_PROGRAM_DEVICES, sizeof(all), all, &size) !=
            CL_SUCCESS) {
        return 0;
    }
    const size_t known = size / sizeof(cl_device_id);
    if (a->count == 0) {
        memcpy((void *)out_devices, (const void *)all, size);
        return known;
    }
    for (cl_uint i = 0; i < a->count; i++) {
        bool found = false;
        for (size_t k = 0; k < known; k++) {
            found = found || all[k] == a->devices[i];
        }
        if (!found) {
            return 0;
        }
        out_devices[i] = a->devices[i];
    }
    return a->count;
}

/* --- the driver ------------------------------------------------------------------------------- */

typedef struct driver_call {
    kn_layer_program *program;
    const kn_layer_arguments *arguments;
    bool compile;
    kn_layer_notice *notice; /* NULL: the application gives no callback */
    cl_int code;             /* what the driver's call returned */
} driver_call;

cl_int kn_layer_build_call(cl_program handle, bool compile, const kn_layer_arguments *a,
                           kn_cl_notify *notify, void *user)
{
    const cl_icd_dispatch *target = kn_layer_target();
    return compile ? target->clCompileProgram(handle, a->count, a->devices, a->options,
                                              a->header_count, a->headers, a->names, notify, user)
                   : target->clBuildProgram(handle, a->count, a->devices, a->options, notify, user);
}

/* Other codes say that the call was refused. */
static bool has_begun(cl_int code)
{
    return code == CL_SUCCESS || code == CL_BUILD_PROGRAM_FAILURE ||
           code == CL_COMPILE_PROGRAM_FAILURE;
}

static bool built_without_error(const kn_layer_program *program, const kn_layer_arguments *a)
{
    cl_device_id devices[DEVICES_LIMIT];
    const size_t count = choose_devices(program->handle, a, devices);
    for (size_t i = 0; i < count; i++) {
        cl_build_status status = CL_BUILD_ERROR;
        if (kn_layer_target()->clGetProgramBuildInfo(program->handle, devices[i],
                                                     CL_PROGRAM_BUILD_STATUS, sizeof(status),
                                                     &status, NULL) != CL_SUCCESS ||
            status != CL_BUILD_SUCCESS) {
            return false;
        }
    }
    return true;
}

/* A driver that was given a callback may return before it knows, and is waited for. */
static cl_int build_in_place(void *user, cl_program *out_program)
{
    driver_call *call = (driver_call *)user;
    const kn_layer_arguments *a = call->arguments;
    const bool notified = a->notify != NULL;
    call->notice = notified ? kn_layer_notice_create(a->notify, a->user) : NULL;
    *out_program = call->program->handle;
    call->code = notified && call->notice == NULL
                     ? CL_OUT_OF_HOST_MEMORY
                     : kn_layer_build_call(call->program->handle, call->compile, a,
                                           notified ? kn_layer_notice_take : NULL,
                                           notified ? (void *)call->notice : a->user);
    /* One that could not be built is as if nobody had tried. */
    call->program->plain = call->program->plain || call->code == CL_SUCCESS;
    if (!notified || call->code != CL_SUCCESS) {
        return call->code;
    }
    kn_layer_notice_wait(call->notice);
    return built_without_error(call->program, a) ? CL_SUCCESS : CL_BUILD_PROGRAM_FAILURE;
}

static cl_int build_past(kn_layer_program *program, bool compile, const kn_layer_arguments *a,
                         const char *reason, bool *out_notify)
{
    driver_call call = {.program = program, .arguments = a, .compile = compile};
    cl_program built = NULL;
    const uint64_t start = kn_clock_now();
    (void)build_in_place(&call, &built);
    if (reason != NULL && !compile) {
        kn_layer_count_bypass(reason, kn_clock_now() - start);
    }
    *out_notify = kn_layer_notice_release(call.notice, has_begun(call.code));
    return call.code;
}

/* --- what is wished for ----------------------------------------------------------------------- */

static char *read_source(cl_program program, size_t *out_length)
{
    const cl_icd_dispatch *target = kn_layer_target();
    size_t size = 0;
    if (target->clGetProgramInfo(program, CL_PROGRAM_SOURCE, 0, NULL, &size) != CL_SUCCESS ||
        size < 2) {
        return NULL;
    }
    char *text = calloc(1, size + 1);
    if (text != NULL &&
        target->clGetProgramInfo(program, CL_PROGRAM_SOURCE, size, text, NULL) != CL_SUCCESS) {
        free(text);
        return NULL;
    }
    *out_length = size - 1;
    return text;
}

static void free_headers(kiln_header *headers, size_t count)
{
    for (size_t i = 0; headers != NULL && i < count; i++) {
        free((void *)(uintptr_t)headers[i].text);
    }
    free(headers);
}

/* NULL: one of them is not made of a text. */
static kiln_header *read_headers(const kn_layer_arguments *a)
{
    kiln_header *headers = calloc((size_t)a->header_count + 1, sizeof(*headers));
    for (cl_uint i = 0; headers != NULL && i < a->header_count; i++) {
        headers[i].name = a->names != NULL ? a->names[i] : NULL;
        headers[i].text = a->headers != NULL && a->headers[i] != NULL && headers[i].name != NULL
                              ? read_source(a->headers[i], &headers[i].length)
                              : NULL;
        if (headers[i].text == NULL) {
            free_headers(headers, i);
            return NULL;
        }
    }
    return headers;
}

static kn_opencl_wish *wish_of_text(const kn_layer_program *program, bool compile,
                                    const kn_layer_arguments *a, const char *text, size_t length)
{
    const cl_icd_dispatch *target = kn_layer_target();
    cl_device_id devices[DEVICES_LIMIT];
    kn_opencl_wish *wish = NULL;
    kiln_header *headers = compile ? read_headers(a) : NULL;
    const kiln_opencl_unit unit = {.struct_size = sizeof(unit),
                                   .strings = &text,
                                   .string_count = 1,
                                   .lengths = &length,
                                   .options = a->options,
                                   .headers = headers,
                                   .header_count = headers != NULL ? a->header_count : 0};
    kiln_opencl_request request = {.struct_size = sizeof(request),
                                   .devices = devices,
                                   .device_count = choose_devices(program->handle, a, devices),
                                   .units = &unit,
                                   .unit_count = 1,
                                   .link = compile};
    if (request.device_count > 0 && (!compile || headers != NULL) &&
        target->clGetProgramInfo(program->handle, CL_PROGRAM_CONTEXT, sizeof(cl_context),
                                 &request.context, NULL) == CL_SUCCESS) {
        kn_ignore(kn_opencl_wish_create(&request, &wish, NULL)); /* NULL after a failure */
    }
    free_headers(headers, a->header_count);
    return wish;
}

static kn_opencl_wish *make_wish(const kn_layer_program *program, bool compile,
                                 const kn_layer_arguments *a)
{
    size_t length = 0;
    char *text = read_source(program->handle, &length);
    kn_opencl_wish *wish = text != NULL ? wish_of_text(program, compile, a, text, length) : NULL;
    free(text);
    return wish;
}

/* --- catching up ------------------------------------------------------------------------------ */

bool kn_layer_build_catch_up(kn_layer_program *program)
{
    kn_layer_build *build = program->build;
    if (build == NULL || program->plain) {
        return true;
    }
    if (kn_handles_has_kernels(program)) {
        return false;
    }
    const kn_opencl_wish *wish = build->wish;
    program->plain = true;
    if (build->deferred) {
        /* What it says is in the program, for whom it concerns. */
        kn_ignore(
            kn_opencl_make_compiled(kn_layer_api(), wish, &wish->texts[0], program->handle, NULL));
        build->deferred = false;
        return true;
    }
    (void)kn_layer_target()->clBuildProgram(program->handle, (cl_uint)wish->device_count,
                                            wish->devices, wish->texts[0].options, NULL, NULL);
    kn_layer_build_forget(program);
    return true;
}

/* --- building --------------------------------------------------------------------------------- */

static cl_int lookup_and_answer(kn_layer_program *program, bool compile, kn_opencl_wish *wish,
                                const kn_layer_arguments *a, bool *out_notify)
{
    kn_layer_lookup lookup;
    driver_call call = {.program = program, .arguments = a, .compile = compile};
    cl_int code = CL_SUCCESS;
    if (!kn_layer_lookup_init(&lookup, wish, compile)) {
        code = build_past(program, compile, a, lookup.reason, out_notify);
        kn_layer_lookup_deinit(&lookup);
        return code;
    }
    lookup.build = build_in_place;
    lookup.user = &call;
    kn_layer_lookup_go(&lookup);
    program->build = kn_layer_lookup_take(&lookup);
    if (lookup.ran) {
        code = call.code;
    } else if (program->build == NULL) {
        code = CL_OUT_OF_HOST_MEMORY;
    }
    *out_notify =
        lookup.ran ? kn_layer_notice_release(call.notice, has_begun(call.code)) : a->notify != NULL;
    kn_layer_lookup_deinit(&lookup);
    return code;
}

/* A second build replaces the first, but only for its devices. */
static bool covers_devices(const kn_opencl_wish *earlier, const kn_opencl_wish *later)
{
    uint32_t index = 0;
    size_t covered = 0;
    while (covered < earlier->device_count &&
           kn_opencl_wish_find(later, earlier->devices[covered], &index)) {
        covered++;
    }
    return covered == earlier->device_count;
}

/* A call that the driver refuses leaves of an earlier build what this driver leaves: it builds what
 * the cache had, and is asked again. */
static cl_int replace_build(kn_layer_program *program, bool compile, kn_opencl_wish *wish,
                            const kn_layer_arguments *a, bool *out_notify)
{
    kn_layer_build *earlier = program->build;
    program->build = NULL;
    const cl_int code = lookup_and_answer(program, compile, wish, a, out_notify);
    if (has_begun(code)) {
        drop_build(earlier);
        return code;
    }
    program->build = earlier;
    (void)kn_layer_build_catch_up(program);
    (void)kn_layer_build_call(program->handle, compile, a, NULL, NULL);
    return code;
}

static cl_int build_again(kn_layer_program *program, bool compile, const kn_layer_arguments *a,
                          bool *out_notify)
{
    const kn_layer_build *build = program->build;
    kn_opencl_wish *wish = make_wish(program, compile, a);
    cl_int code = CL_INVALID_OPERATION; /* as the specification has it for a program with kernels */
    if (build->loaded != NULL && kn_handles_has_kernels(program)) {
        /* What else is wrong with the call the driver says of the one that has them. */
        code = wish != NULL ? code
                            : kn_layer_build_call(build->loaded, compile, a, a->notify, a->user);
    } else if (!program->plain && wish != NULL && covers_devices(build->wish, wish)) {
        code = replace_build(program, compile, wish, a, out_notify);
    } else {
        if (!program->plain) {
            (void)kn_layer_build_catch_up(program);
        }
        kn_layer_build_forget(program);
        code = build_past(program, compile, a, "the program was built before", out_notify);
    }
    kn_opencl_wish_release(wish);
    return code;
}

cl_int kn_layer_build_program(kn_layer_program *program, bool compile, const kn_layer_arguments *a,
                              bool *out_notify)
{
    *out_notify = false;
    if (program->build != NULL) {
        return build_again(program, compile, a, out_notify);
    }
    kn_opencl_wish *wish = NULL;
    const char *reason = NULL;
    if (program->given_il) {
        reason = "it is given as IL, not as source";
    } else if (program->plain) {
        reason = "the program was built before";
    } else {
        wish = make_wish(program, compile, a);
    }
    const cl_int code = wish != NULL ? lookup_and_answer(program, compile, wish, a, out_notify)
                                     : build_past(program, compile, a, reason, out_notify);
    kn_opencl_wish_release(wish);
    return code;
}
