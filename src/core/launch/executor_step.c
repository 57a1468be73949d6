/* What is done to one submission, on whichever of the executor's threads it is. The launch is left
 * to its queue; copies are where the device makes them by itself, and else wait for their end on
 * that thread. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/diag.h"
#include "core/launch/buffer.h"
#include "core/launch/executor.h"
#include "sized/sized.h"

/* --- filling ---------------------------------------------------------------------------------- */

static kiln_status refuse_work(const kiln_work *work, const char *fix, const char *why,
                               kiln_diag *diag)
{
    const char *what = work->entry != NULL ? work->entry : "a submission";
    return kiln_diag_set(diag, KILN_E_INVALID, fix, what, "%s", why);
}

static kiln_status check_work(const kiln_executor *executor, const kiln_work *work, kiln_diag *diag)
{
    if (work->entry == NULL || work->entry[0] == '\0') {
        return refuse_work(work, "name the kernel", "no entry is named", diag);
    }
    if (work->program == NULL || work->program->device != executor->device) {
        return refuse_work(work, "build it for the executor's device",
                           "it has no program, or one of another device", diag);
    }
    if (work->arg_count > KILN_WORK_ARGS_MAX || (work->arg_count > 0 && work->args == NULL)) {
        return refuse_work(work, NULL, "too many arguments, or no list of them", diag);
    }
    return KILN_OK;
}

/* Room for the entry's name and all values, each aligned as malloc aligns. */
static bool reserve_slot(kn_slot *slot, const kiln_work *work)
{
    size_t need = strlen(work->entry) + 1;
    for (size_t i = 0; i < work->arg_count; i++) {
        const size_t size = work->args[i].kind == KILN_ARG_VALUE ? work->args[i].size : 0;
        if (!kn_add_size(need, 15, &need) || !kn_add_size(need, size, &need)) {
            return false;
        }
    }
    if (need > slot->capacity) {
        char *bytes = (char *)malloc(need);
        if (bytes == NULL) {
            return false;
        }
        free(slot->bytes);
        slot->bytes = bytes;
        slot->capacity = need;
    }
    return true;
}

kiln_status kn_slot_fill(kn_slot *slot, const kiln_executor *executor, const kiln_work *work,
                         kiln_diag *diag)
{
    kiln_work room;
    work = kn_sized_view(KN_SIZED(kiln_work), work, &room, diag);
    kiln_status status = work != NULL ? check_work(executor, work, diag) : KILN_E_INVALID;
    if (status != KILN_OK) {
        return status;
    }
    if (!reserve_slot(slot, work)) {
        return kn_no_memory(diag, work->entry);
    }
    size_t used = 0;
    for (size_t i = 0; i < work->arg_count; i++) {
        const kiln_work_arg *arg = &work->args[i];
        slot->work[i] = *arg;
        slot->pooled[i] = NULL;
        slot->args[i] = (kiln_arg){.kind = arg->kind,
                                   .buffer = arg->buffer,
                                   .offset = arg->buffer != NULL ? arg->offset : 0,
                                   .value = arg->value,
                                   .size = arg->size};
        if (arg->kind == KILN_ARG_VALUE && arg->value != NULL) {
            memcpy(slot->bytes + used, arg->value, arg->size);
            slot->args[i].value = slot->bytes + used;
            used = (used + arg->size + 15) / 16 * 16;
        }
    }
    slot->entry = memcpy(slot->bytes + used, work->entry, strlen(work->entry) + 1);
    slot->launch = (kiln_launch){.struct_size = sizeof(kiln_launch),
                                 .dims = work->dims,
                                 .args = slot->args,
                                 .arg_count = work->arg_count,
                                 .shared_bytes = work->shared_bytes};
    memcpy(slot->launch.global, work->global, sizeof(work->global));
    memcpy(slot->launch.local, work->local, sizeof(work->local));
    memcpy(slot->launch.offset, work->offset, sizeof(work->offset));
    slot->done = work->done;
    slot->user = work->user;
    slot->event = NULL;
    slot->upload_count = 0;
    slot->program = kiln_program_retain(work->program);
    return KILN_OK;
}

/* --- buffers ---------------------------------------------------------------------------------- */

static kiln_status make_pooled(kiln_executor *executor, size_t size, kn_pooled **out_pooled,
                               kiln_diag *diag)
{
    kn_pooled *pooled = (kn_pooled *)calloc(1, sizeof(*pooled));
    if (pooled == NULL) {
        return kn_no_memory(diag, "creating a buffer");
    }
    const size_t rounded = kn_buffer_pool_round(size);
    const uint64_t most = executor->device->info.max_buffer_bytes;
    const size_t wanted = most != 0 && rounded > most ? size : rounded;
    kiln_status status = kiln_buffer_create(executor->device, wanted, &pooled->buffer, diag);
    if (status != KILN_OK) {
        free(pooled);
        return status;
    }
    *out_pooled = pooled;
    return KILN_OK;
}

/* From the pool, or new; when the device has no more, the idle ones are let go first. */
static kiln_status take_buffer(kiln_executor *executor, size_t size, kn_pooled **out_pooled,
                               kiln_diag *diag)
{
    kn_mutex_lock(&executor->mutex);
    kn_pooled *pooled = kn_buffer_pool_find(&executor->pool, size);
    kn_mutex_unlock(&executor->mutex);
    if (pooled == NULL) {
        kiln_status status = make_pooled(executor, size, &pooled, diag);
        if (status == KILN_E_NOMEM) {
            kn_mutex_lock(&executor->mutex);
            kn_pooled *idle = kn_buffer_pool_trim(&executor->pool, 0);
            kn_mutex_unlock(&executor->mutex);
            if (idle != NULL) {
                kn_pooled_destroy(idle);
                kiln_diag_clear(diag);
                status = make_pooled(executor, size, &pooled, diag);
            }
        }
        if (status != KILN_OK) {
            return status;
        }
        kn_mutex_lock(&executor->mutex);
        kn_buffer_pool_add(&executor->pool, pooled);
        kn_mutex_unlock(&executor->mutex);
    }
    *out_pooled = pooled;
    return KILN_OK;
}

/* Every buffer argument without a buffer gets one, cut to its size. */
static kiln_status take_buffers(kn_slot *slot, kiln_executor *executor, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    for (size_t i = 0; i < slot->launch.arg_count && status == KILN_OK; i++) {
        const kiln_work_arg *arg = &slot->work[i];
        if (arg->kind != KILN_ARG_BUFFER || arg->buffer != NULL) {
            continue;
        }
        status = take_buffer(executor, arg->size, &slot->pooled[i], diag);
        if (status == KILN_OK) {
            slot->views[i] = *slot->pooled[i]->buffer;
            slot->views[i].size = arg->size;
            slot->args[i].buffer = &slot->views[i];
        }
    }
    return status;
}

/* --- the steps -------------------------------------------------------------------------------- */

static kiln_status upload_arg(kn_slot *slot, const kiln_executor *executor, size_t index,
                              kiln_diag *diag)
{
    const kiln_work_arg *arg = &slot->work[index];
    void **event = executor->async ? &slot->uploads[slot->upload_count] : NULL;
    kiln_status status =
        kn_queue_begin_write(executor->up, slot->args[index].buffer, slot->args[index].offset,
                             arg->input, arg->size, event, diag);
    slot->upload_count += event != NULL && *event != NULL;
    return status;
}

kiln_status kn_slot_start(kn_slot *slot, kiln_executor *executor, kiln_diag *diag)
{
    kiln_status status = take_buffers(slot, executor, diag);
    for (size_t i = 0; i < slot->launch.arg_count && status == KILN_OK; i++) {
        const kiln_work_arg *arg = &slot->work[i];
        if (arg->kind == KILN_ARG_BUFFER && arg->input != NULL) {
            status = upload_arg(slot, executor, i, diag);
        }
    }
    if (status == KILN_OK && slot->upload_count > 0) {
        /* The queue is in order: after its last copy is after all. */
        status = kn_hal_queue_wait(&executor->device->driver->in, executor->run->handle,
                                   slot->uploads[slot->upload_count - 1], diag);
    }
    if (status == KILN_OK) {
        status = kn_launch_put(executor->run, slot->program, slot->entry, &slot->launch,
                               slot->resolved, &slot->event, diag);
    }
    return status;
}

/* The kernel on its device's track. That it has just finished is as near as can be known: the event
 * has a length, not a place. */
static void trace_kernel(const kn_slot *slot, const kiln_device *device)
{
    uint64_t took = 0;
    const uint64_t now = kn_clock_now();
    if (kn_hal_event_elapsed(&device->driver->in, device->handle, slot->event, &took, NULL) ==
        KILN_OK) {
        kn_trace_put_device(device->runtime->trace, now - took, now, slot->entry,
                            &(kn_trace_about){.device = device});
    }
}

/* Waits for the uploads: for their own failures, and for what `input` points to to be free again.
 */
static kiln_status finish_uploads(kn_slot *slot, const kiln_device *device, kiln_diag *diag)
{
    const kn_instance *in = &device->driver->in;
    kiln_status first = KILN_OK;
    for (uint32_t i = 0; i < slot->upload_count; i++) {
        kiln_status status =
            kn_hal_event_wait(in, device->handle, slot->uploads[i], first == KILN_OK ? diag : NULL);
        kn_hal_event_destroy(in, device->handle, slot->uploads[i]);
        slot->uploads[i] = NULL;
        first = first == KILN_OK ? status : first;
    }
    slot->upload_count = 0;
    return first;
}

/* Puts all downloads into their queue, then waits for each. */
static kiln_status download_args(kn_slot *slot, const kiln_executor *executor, kiln_diag *diag)
{
    const kiln_device *device = executor->device;
    void *events[KILN_WORK_ARGS_MAX];
    size_t count = 0;
    kiln_status status = KILN_OK;
    for (size_t i = 0; i < slot->launch.arg_count && status == KILN_OK; i++) {
        const kiln_work_arg *arg = &slot->work[i];
        if (arg->kind == KILN_ARG_BUFFER && arg->output != NULL) {
            events[count] = NULL;
            status = kn_queue_begin_read(executor->down, slot->args[i].buffer, slot->args[i].offset,
                                         arg->output, arg->size,
                                         executor->async ? &events[count] : NULL, diag);
            count += events[count] != NULL;
        }
    }
    for (size_t i = 0; i < count; i++) {
        kiln_status one = kn_hal_event_wait(&device->driver->in, device->handle, events[i],
                                            status == KILN_OK ? diag : NULL);
        kn_hal_event_destroy(&device->driver->in, device->handle, events[i]);
        status = status == KILN_OK ? one : status;
    }
    return status;
}

kiln_status kn_slot_complete(kn_slot *slot, kiln_executor *executor, kiln_diag *diag)
{
    const kiln_device *device = executor->device;
    kiln_status status = finish_uploads(slot, device, diag);
    if (slot->event != NULL) { /* else the launch was done when it returned */
        kiln_status launch = kn_hal_event_wait(&device->driver->in, device->handle, slot->event,
                                               status == KILN_OK ? diag : NULL);
        status = status == KILN_OK ? launch : status;
    }
    if (device->runtime->trace != NULL && status == KILN_OK && slot->event != NULL) {
        trace_kernel(slot, device);
    }
    return status == KILN_OK ? download_args(slot, executor, diag) : status;
}

void kn_slot_empty(kn_slot *slot, kiln_executor *executor)
{
    const kiln_device *device = executor->device;
    kn_ignore(finish_uploads(slot, device, NULL)); /* of what failed on the way: reported already */
    if (slot->event != NULL) {
        kn_hal_event_destroy(&device->driver->in, device->handle, slot->event);
        slot->event = NULL;
    }
    kiln_program_release(slot->program);
    slot->program = NULL;
    kn_mutex_lock(&executor->mutex);
    for (size_t i = 0; i < slot->launch.arg_count; i++) {
        if (slot->pooled[i] != NULL) {
            kn_buffer_pool_put(&executor->pool, slot->pooled[i]);
            slot->pooled[i] = NULL;
        }
    }
    kn_pooled *gone = executor->pool.idle_limit > 0
                          ? kn_buffer_pool_trim(&executor->pool, executor->pool.idle_limit)
                          : NULL;
    kn_mutex_unlock(&executor->mutex);
    kn_pooled_destroy(gone);
}
