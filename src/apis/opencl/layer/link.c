/* See build.h: clLinkProgram. The key is made of all that its inputs were compiled from; where one
 * of them is not known the driver links. */
#include "apis/opencl/layer/build.h"

#include <stdlib.h>
#include <string.h>

#include "apis/opencl/layer/notify.h"
#include "base/checked.h"
#include "sys/clock.h"

#define INPUTS_LIMIT 4096u

typedef struct link_call {
    cl_context context;
    const kn_layer_arguments *arguments;
    kn_layer_program **inputs; /* pinned */
    kn_layer_notice *notice;   /* NULL: the application gives no callback */
    cl_program program;
    cl_int code;
} link_call;

/* --- the driver ------------------------------------------------------------------------------- */

static void catch_up_inputs(const link_call *call)
{
    for (cl_uint i = 0; i < call->arguments->header_count; i++) {
        kn_layer_program *input = call->inputs[i];
        if (input != NULL) {
            kn_mutex_lock(&input->lock);
            (void)kn_layer_build_catch_up(input);
            kn_mutex_unlock(&input->lock);
        }
    }
}

static cl_program call_linker(link_call *call, kn_cl_notify *notify, void *user)
{
    const kn_layer_arguments *a = call->arguments;
    catch_up_inputs(call);
    return kn_layer_target()->clLinkProgram(call->context, a->count, a->devices, a->options,
                                            a->header_count, a->headers, notify, user, &call->code);
}

static cl_int link_in_place(void *user, cl_program *out_program)
{
    link_call *call = (link_call *)user;
    const kn_layer_arguments *a = call->arguments;
    const bool notified = a->notify != NULL;
    call->code = CL_OUT_OF_HOST_MEMORY;
    call->notice = notified ? kn_layer_notice_create(a->notify, a->user) : NULL;
    if (!notified || call->notice != NULL) {
        call->program = call_linker(call, notified ? kn_layer_notice_take : NULL,
                                    notified ? (void *)call->notice : a->user);
    }
    if (notified && call->program != NULL && call->code == CL_SUCCESS) {
        kn_layer_notice_wait(call->notice);
    }
    *out_program = call->program;
    return call->code;
}

static cl_program link_past(link_call *call, const char *reason, cl_int *code)
{
    const uint64_t start = kn_clock_now();
    cl_program program = call_linker(call, call->arguments->notify, call->arguments->user);
    kn_layer_count_bypass(reason, kn_clock_now() - start);
    if (code != NULL) {
        *code = call->code;
    }
    return program;
}

/* --- what is wished for ----------------------------------------------------------------------- */

static bool is_linkable(kn_layer_program *input, const cl_device_id *devices, size_t count)
{
    const kn_layer_build *build = input != NULL ? input->build : NULL;
    bool known = build != NULL && build->unit;
    for (size_t i = 0; known && i < count; i++) {
        uint32_t index = 0;
        known = kn_opencl_wish_find(build->wish, devices[i], &index);
    }
    return known;
}

static size_t choose_link_devices(const link_call *call, cl_device_id out_devices[DEVICES_LIMIT])
{
    const kn_layer_arguments *a = call->arguments;
    size_t size = 0;
    if ((a->count == 0) != (a->devices == NULL) || (a->notify == NULL && a->user != NULL) ||
        a->count > DEVICES_LIMIT) {
        return 0;
    }
    if (a->count > 0) {
        memcpy((void *)out_devices, (const void *)a->devices, a->count * sizeof(cl_device_id));
        return a->count;
    }
    return kn_layer_target()->clGetContextInfo(call->context, CL_CONTEXT_DEVICES,
                                               DEVICES_LIMIT * sizeof(cl_device_id), out_devices,
                                               &size) == CL_SUCCESS
               ? size / sizeof(cl_device_id)
               : 0;
}

/* What one input was compiled from; its lock is taken only for the look. */
static bool copy_input(kn_layer_program *input, const cl_device_id *devices, size_t count,
                       kn_opencl_wish **out_wish)
{
    if (input == NULL) {
        return false;
    }
    kn_mutex_lock(&input->lock);
    const bool known = is_linkable(input, devices, count);
    *out_wish = known ? kn_opencl_wish_retain(input->build->wish) : NULL;
    kn_mutex_unlock(&input->lock);
    return known;
}

static kn_opencl_wish *wish_of_inputs(const link_call *call, kn_opencl_wish **parts,
                                      kiln_opencl_unit *units)
{
    const kn_layer_arguments *a = call->arguments;
    cl_device_id devices[DEVICES_LIMIT];
    kn_opencl_wish *wish = NULL;
    const size_t count = choose_link_devices(call, devices);
    bool known = count > 0;
    for (cl_uint i = 0; known && i < a->header_count; i++) {
        known = copy_input(call->inputs[i], devices, count, &parts[i]);
        if (known) {
            const kn_opencl_text *text = &parts[i]->texts[0];
            units[i] = (kiln_opencl_unit){.struct_size = sizeof(units[i]),
                                          .strings = (const char *const *)&text->text,
                                          .string_count = 1,
                                          .lengths = &text->length,
                                          .options = text->options,
                                          .headers = text->headers,
                                          .header_count = text->header_count};
        }
    }
    const kiln_opencl_request request = {.struct_size = sizeof(request),
                                         .context = call->context,
                                         .devices = devices,
                                         .device_count = count,
                                         .units = units,
                                         .unit_count = a->header_count,
                                         .link = true,
                                         .link_options = a->options};
    if (known) {
        kn_ignore(kn_opencl_wish_create(&request, &wish, NULL)); /* NULL after a failure */
    }
    return wish;
}

static kn_opencl_wish *make_link_wish(const link_call *call)
{
    const size_t count = call->arguments->header_count;
    kn_opencl_wish **parts = calloc(count + 1, sizeof(*parts));
    kiln_opencl_unit *units = calloc(count + 1, sizeof(*units));
    kn_opencl_wish *wish =
        parts != NULL && units != NULL ? wish_of_inputs(call, parts, units) : NULL;
    for (size_t i = 0; parts != NULL && i < count; i++) {
        kn_opencl_wish_release(parts[i]);
    }
    free((void *)parts);
    free(units);
    return wish;
}

/* --- linking ---------------------------------------------------------------------------------- */

/* What is linked is a new program, hit or not, and its handle is the driver's. */
static void keep_linked(kn_layer_lookup *lookup, cl_program program)
{
    kn_layer_build *build = kn_layer_lookup_take(lookup);
    if (build == NULL) {
        return;
    }
    build->loaded = NULL;
    kn_handles_add_program(program, false);
    kn_layer_program *known = kn_handles_pin(program);
    if (known != NULL) {
        kn_mutex_lock(&known->lock);
        known->plain = true;
        known->build = build;
        kn_mutex_unlock(&known->lock);
        kn_handles_unpin(known);
    } else {
        kn_layer_build_destroy(build);
    }
}

static cl_program link_through(link_call *call, kn_opencl_wish *wish, cl_int *code)
{
    kn_layer_lookup lookup;
    cl_program program = NULL;
    const kn_layer_arguments *a = call->arguments;
    if (!kn_layer_lookup_init(&lookup, wish, false)) {
        program = link_past(call, lookup.reason, code);
        kn_layer_lookup_deinit(&lookup);
        return program;
    }
    lookup.build = link_in_place;
    lookup.user = call;
    kn_layer_lookup_go(&lookup);
    program = lookup.ran ? call->program : lookup.base.loaded;
    if (program != NULL) {
        keep_linked(&lookup, program);
    }
    if (code != NULL) {
        *code = lookup.ran ? call->code : CL_SUCCESS;
    }
    kn_layer_lookup_deinit(&lookup);
    if (lookup.ran ? kn_layer_notice_release(call->notice, program != NULL) : a->notify != NULL) {
        a->notify(program, a->user);
    }
    return program;
}

cl_program kn_layer_link_program(cl_context context, const kn_layer_arguments *arguments,
                                 cl_int *code)
{
    const size_t count = arguments->header_count;
    link_call call = {.context = context, .arguments = arguments};
    kn_opencl_wish *wish = NULL;
    call.inputs = count > 0 && count <= INPUTS_LIMIT && arguments->headers != NULL
                      ? calloc(count, sizeof(kn_layer_program *))
                      : NULL;
    if (call.inputs == NULL) {
        return kn_layer_target()->clLinkProgram(
            context, arguments->count, arguments->devices, arguments->options,
            arguments->header_count, arguments->headers, arguments->notify, arguments->user, code);
    }
    for (size_t i = 0; i < count; i++) {
        call.inputs[i] = kn_handles_pin(arguments->headers[i]);
    }
    wish = make_link_wish(&call);
    cl_program program = wish != NULL ? link_through(&call, wish, code)
                                      : link_past(&call, "what it is linked of is not known", code);
    kn_opencl_wish_release(wish);
    for (size_t i = 0; i < count; i++) {
        kn_handles_unpin(call.inputs[i]);
    }
    free((void *)call.inputs);
    return program;
}
