/* Launches: everything that can be checked is checked here, once for all backends; no cache code
 * below this line. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "core/build/background.h"
#include "core/build/capture.h"
#include "core/build/program.h"
#include "core/launch/executor.h"
#include "sized/sized.h"

#define ARGS_ON_STACK 32
#define ARGS_MAX 1024

struct kiln_event {
    atomic_uint references;
    kiln_device *device;
    void *handle; /* NULL: it was done when the launch returned */
};

static const char *kind_name(kiln_arg_kind kind)
{
    switch (kind) {
    case KILN_ARG_BUFFER:
        return "a buffer";
    case KILN_ARG_VALUE:
        return "a value";
    case KILN_ARG_LOCAL:
        return "work-group memory";
    case KILN_ARG_UNKNOWN:
        break;
    }
    return "nothing";
}

static kiln_status refuse_arg(const char *entry, size_t index, const char *why, kiln_diag *diag)
{
    return kiln_diag_set(diag, KILN_E_INVALID, NULL, entry, "argument %zu: %s", index, why);
}

/* Resolves one argument, and checks it by itself. */
static kiln_status take_arg(const kiln_queue *queue, const char *entry, size_t index,
                            const kiln_arg *arg, kiln_sys_arg *out_arg, kiln_diag *diag)
{
    const kn_instance *in = &queue->device->driver->in;
    kiln_sys_arg taken = {.kind = arg->kind, .size = arg->size};
    switch (arg->kind) {
    case KILN_ARG_BUFFER:
        if (arg->buffer == NULL || arg->buffer->device != queue->device) {
            return refuse_arg(entry, index,
                              arg->buffer == NULL ? "the buffer is NULL"
                                                  : "the buffer belongs to another device",
                              diag);
        }
        if (arg->offset >= arg->buffer->size) {
            return refuse_arg(entry, index, "the offset is past the end of the buffer", diag);
        }
        if (arg->offset != 0 && !kn_instance_can(in, KILN_CAP_BUFFER_OFFSET)) {
            return refuse_arg(entry, index, "this backend takes no buffer offsets", diag);
        }
        taken.buffer = arg->buffer->handle;
        taken.offset = arg->offset;
        taken.size = arg->buffer->size - arg->offset;
        break;
    case KILN_ARG_VALUE:
        if (arg->value == NULL || arg->size == 0) {
            return refuse_arg(entry, index, "the value has no bytes", diag);
        }
        taken.value = arg->value;
        break;
    case KILN_ARG_LOCAL:
        if (arg->size == 0) {
            return refuse_arg(entry, index, "work-group memory of no size", diag);
        }
        break;
    case KILN_ARG_UNKNOWN:
        return refuse_arg(entry, index, "its kind is not set", diag);
    }
    *out_arg = taken;
    return KILN_OK;
}

/* Compares the arguments with what the kernel takes, where the backend can tell. */
static kiln_status check_params(kiln_program *program, const char *entry, const kiln_launch *launch,
                                kiln_diag *diag)
{
    const kn_reflection *known = NULL;
    kiln_status status = kn_program_reflect(program, entry, &known, diag);
    if (status == KILN_E_UNSUPPORTED) {
        return KILN_OK;
    }
    if (status != KILN_OK) {
        if (status == KILN_MISS && diag != NULL) {
            diag->status = KILN_E_INVALID;
        }
        return status == KILN_MISS ? KILN_E_INVALID : status;
    }
    if (known->count != launch->arg_count) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, entry,
                             "it takes %zu arguments, %zu were given", known->count,
                             launch->arg_count);
    }
    for (size_t i = 0; i < known->count; i++) {
        const kiln_param *param = &known->params[i];
        const kiln_arg *arg = &launch->args[i];
        if (param->kind != KILN_ARG_UNKNOWN && param->kind != arg->kind) {
            return kiln_diag_set(diag, KILN_E_INVALID, NULL, entry,
                                 "argument %zu (%s %s): it is %s, %s was given", i, param->type,
                                 param->name, kind_name(param->kind), kind_name(arg->kind));
        }
        if (arg->kind == KILN_ARG_VALUE && param->size != 0 && param->size != arg->size) {
            return kiln_diag_set(diag, KILN_E_INVALID, NULL, entry,
                                 "argument %zu (%s %s): it has %zu bytes, %zu were given", i,
                                 param->type, param->name, param->size, arg->size);
        }
    }
    return KILN_OK;
}

static kiln_status refuse_shape(const char *entry, uint32_t dimension, const char *why,
                                const char *fix, kiln_diag *diag)
{
    return kiln_diag_set(diag, KILN_E_INVALID, fix, entry, "dimension %u: %s", (unsigned)dimension,
                         why);
}

/* Checks one dimension of a launch whose local sizes are chosen. */
static kiln_status check_local(const kiln_device *device, const char *entry, uint32_t dimension,
                               const kiln_sys_launch *shape, kiln_diag *diag)
{
    uint64_t local = shape->local[dimension];
    uint32_t limit = device->info.max_group_dim[dimension];
    if (local == 0) {
        return refuse_shape(entry, dimension, "its local size is 0",
                            "give a local size in every dimension, or in none", diag);
    }
    if (limit != 0 && local > limit) {
        return refuse_shape(entry, dimension, "the local size exceeds the device's limit",
                            "give a smaller one, or none", diag);
    }
    if (!kn_instance_can(&device->driver->in, KILN_CAP_PARTIAL_GROUPS) &&
        shape->global[dimension] % local != 0) {
        return refuse_shape(entry, dimension, "the global size is not a multiple of the local size",
                            "round the global size up", diag);
    }
    return KILN_OK;
}

/* A group has as many items as its local sizes multiplied; none of them is 0. */
static kiln_status check_group(const kiln_device *device, const char *entry,
                               const kiln_sys_launch *shape, kiln_diag *diag)
{
    uint64_t limit = device->info.max_group_size;
    uint64_t group = 1;
    for (uint32_t i = 0; limit != 0 && i < 3; i++) {
        if (shape->local[i] > limit / group) {
            return kiln_diag_set(diag, KILN_E_INVALID, NULL, entry,
                                 "a work-group of %llu x %llu x %llu items; the device takes %llu",
                                 (unsigned long long)shape->local[0],
                                 (unsigned long long)shape->local[1],
                                 (unsigned long long)shape->local[2], (unsigned long long)limit);
        }
        group *= shape->local[i];
    }
    return KILN_OK;
}

/* Fills the shape of `out` and checks it against the device's limits. */
static kiln_status take_shape(const kiln_device *device, const char *entry,
                              const kiln_launch *launch, kiln_sys_launch *out, kiln_diag *diag)
{
    bool chosen = false;
    if (launch->dims < 1 || launch->dims > 3) {
        return kiln_diag_set(diag, KILN_E_INVALID, "use 1 to 3", entry, "%u dimensions",
                             (unsigned)launch->dims);
    }
    out->dims = launch->dims;
    for (uint32_t i = 0; i < launch->dims; i++) {
        chosen = chosen || launch->local[i] != 0;
    }
    for (uint32_t i = 0; i < 3; i++) {
        bool used = i < launch->dims;
        out->global[i] = used ? launch->global[i] : 1;
        out->local[i] = used ? launch->local[i] : (chosen ? 1 : 0);
        out->offset[i] = used ? launch->offset[i] : 0;
        if (out->global[i] == 0) {
            return refuse_shape(entry, i, "no work-items", NULL, diag);
        }
        kiln_status status = chosen ? check_local(device, entry, i, out, diag) : KILN_OK;
        if (status != KILN_OK) {
            return status;
        }
    }
    return chosen ? check_group(device, entry, out, diag) : KILN_OK;
}

/* What only some backends have. */
static kiln_status take_attributes(const kiln_device *device, const char *entry,
                                   const kiln_launch *launch, kiln_sys_launch *out, kiln_diag *diag)
{
    const kn_instance *in = &device->driver->in;
    bool clusters = false;
    for (uint32_t i = 0; i < 3; i++) {
        clusters = clusters || launch->cluster[i] != 0;
    }
    if (launch->cooperative && !kn_instance_can(in, KILN_CAP_COOPERATIVE)) {
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, NULL, entry,
                             "%s has no cooperative launches", in->backend->name);
    }
    if (clusters && !kn_instance_can(in, KILN_CAP_CLUSTERS)) {
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, NULL, entry, "%s has no clusters",
                             in->backend->name);
    }
    out->cooperative = launch->cooperative;
    for (uint32_t i = 0; clusters && i < 3; i++) {
        out->cluster[i] = launch->cluster[i] != 0 ? launch->cluster[i] : 1;
    }
    return KILN_OK;
}

static kiln_status check_launch(const kiln_queue *queue, const kiln_program *program,
                                const char *entry, const kiln_launch *launch, kiln_diag *diag)
{
    const char *what = entry != NULL ? entry : "a launch";
    if (entry == NULL || entry[0] == '\0') {
        return kiln_diag_set(diag, KILN_E_INVALID, "name the kernel", what, "no entry is named");
    }
    if (program->device != queue->device) {
        return kiln_diag_set(diag, KILN_E_INVALID, "build it for the queue's device", what,
                             "the program is of another device than the queue");
    }
    if (launch->arg_count > ARGS_MAX || (launch->arg_count > 0 && launch->args == NULL)) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, what, "%zu arguments, or no list of them",
                             launch->arg_count);
    }
    return KILN_OK;
}

/* Checks the launch against the device and the kernel, and puts it in the queue. Arguments are
 * resolved into `args`. */
static kiln_status submit_checked(kiln_queue *queue, kiln_program *program, const char *entry,
                                  const kiln_launch *launch, kiln_sys_arg *args, void **out_handle,
                                  kiln_diag *diag)
{
    kiln_sys_launch sys = {.program = program->handle,
                           .entry = entry,
                           .args = args,
                           .arg_count = launch->arg_count,
                           .shared_bytes = launch->shared_bytes};
    kn_trace *trace = queue->device->runtime->trace;
    kiln_status status = take_shape(queue->device, entry, launch, &sys, diag);
    status = status == KILN_OK ? take_attributes(queue->device, entry, launch, &sys, diag) : status;
    status = status == KILN_OK ? check_params(program, entry, launch, diag) : status;
    for (size_t i = 0; status == KILN_OK && i < launch->arg_count; i++) {
        status = take_arg(queue, entry, i, &launch->args[i], &args[i], diag);
    }
    if (status != KILN_OK) {
        return status;
    }
    const uint64_t start = kn_trace_begin(trace);
    status = kn_hal_queue_launch(&queue->device->driver->in, queue->handle, &sys, out_handle, diag);
    kn_trace_end(trace, start, "launch", &(kn_trace_about){.what = entry, .device = queue->device});
    return status;
}

/* The launch of the program, or of the fallback that runs in its place. */
static kiln_status submit_launch(kiln_queue *queue, kiln_program *program, const char *entry,
                                 const kiln_launch *launch, kiln_sys_arg *args, void **out_handle,
                                 kiln_diag *diag)
{
    kiln_program *now = kn_program_now(program);
    entry = kn_program_entry_now(program, now, entry);
    kiln_status status = submit_checked(queue, now, entry, launch, args, out_handle, diag);
    if (status == KILN_OK) {
        kn_capture_consider(now);
    }
    return status;
}

kiln_status kn_launch_put(kiln_queue *queue, kiln_program *program, const char *entry,
                          const kiln_launch *launch, kiln_sys_arg *room, void **out_handle,
                          kiln_diag *diag)
{
    const kiln_status status = check_launch(queue, program, entry, launch, diag);
    return status == KILN_OK ? submit_launch(queue, program, entry, launch, room, out_handle, diag)
                             : status;
}

kiln_status kiln_queue_launch(kiln_queue *queue, kiln_program *program, const char *entry,
                              const kiln_launch *launch, kiln_event **out_event, kiln_diag *diag)
{
    kiln_sys_arg on_stack[ARGS_ON_STACK];
    kiln_sys_arg *args = on_stack;
    kiln_event *event = NULL;
    kiln_launch room;
    if (out_event != NULL) {
        *out_event = NULL;
    }
    launch = kn_sized_view(KN_SIZED(kiln_launch), launch, &room, diag);
    kiln_status status =
        launch != NULL ? check_launch(queue, program, entry, launch, diag) : KILN_E_INVALID;
    if (status != KILN_OK) {
        return status;
    }
    if (launch->arg_count > ARGS_ON_STACK) {
        args = (kiln_sys_arg *)calloc(launch->arg_count, sizeof(*args));
    }
    if (out_event != NULL) {
        event = (kiln_event *)calloc(1, sizeof(*event));
    }
    if (args == NULL || (out_event != NULL && event == NULL)) {
        status = kn_no_memory(diag, entry);
    } else {
        status = submit_launch(queue, program, entry, launch, args,
                               event != NULL ? &event->handle : NULL, diag);
    }
    if (status == KILN_OK && event != NULL) {
        atomic_init(&event->references, 1);
        event->device = queue->device;
        *out_event = event;
        event = NULL;
    }
    free(event);
    if (args != on_stack) {
        free(args);
    }
    return status;
}

kiln_status kiln_queue_wait_event(kiln_queue *queue, kiln_event *event, kiln_diag *diag)
{
    const kn_instance *in = &queue->device->driver->in;
    if (event->device != queue->device) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, "ordering two queues",
                             "the event is of another device than the queue");
    }
    if (event->handle == NULL) {
        return KILN_OK;
    }
    return kn_instance_can(in, KILN_CAP_QUEUE_WAIT)
               ? kn_hal_queue_wait(in, queue->handle, event->handle, diag)
               : kiln_event_wait(event, diag);
}

kiln_status kiln_event_wait(kiln_event *event, kiln_diag *diag)
{
    if (event->handle == NULL) {
        return KILN_OK;
    }
    return kn_hal_event_wait(&event->device->driver->in, event->device->handle, event->handle,
                             diag);
}

kiln_status kiln_event_elapsed(kiln_event *event, uint64_t *out_ns, kiln_diag *diag)
{
    *out_ns = 0;
    kiln_status status = kiln_event_wait(event, diag);
    if (status == KILN_OK && event->handle != NULL) {
        status = kn_hal_event_elapsed(&event->device->driver->in, event->device->handle,
                                      event->handle, out_ns, diag);
    }
    return status;
}

kiln_event *kiln_event_retain(kiln_event *event)
{
    if (event != NULL) {
        (void)atomic_fetch_add_explicit(&event->references, 1, memory_order_relaxed);
    }
    return event;
}

void kiln_event_release(kiln_event *event)
{
    if (event != NULL &&
        atomic_fetch_sub_explicit(&event->references, 1, memory_order_acq_rel) == 1) {
        if (event->handle != NULL) {
            kn_hal_event_destroy(&event->device->driver->in, event->device->handle, event->handle);
        }
        free(event);
    }
}
