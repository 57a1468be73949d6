/* Queues: copies and fills with their ranges checked, and waiting. */
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "core/launch/buffer.h"

kiln_status kn_queue_make(kiln_device *device, const uint64_t *native, kiln_queue **out_queue,
                          kiln_diag *diag)
{
    const kn_instance *in = &device->driver->in;
    void *handle = NULL;
    *out_queue = NULL;
    kiln_status status = kn_device_handle(device, &handle, diag);
    if (status != KILN_OK) {
        return status;
    }
    kiln_queue *queue = (kiln_queue *)calloc(1, sizeof(*queue));
    if (queue == NULL) {
        return kn_no_memory(diag, "creating a queue");
    }
    queue->device = device;
    queue->borrowed = native != NULL;
    status = native == NULL ? kn_hal_queue_create(in, handle, &queue->handle, diag)
                            : kn_hal_queue_wrap(in, handle, *native, &queue->handle, diag);
    if (status != KILN_OK) {
        free(queue);
        return status;
    }
    *out_queue = queue;
    return KILN_OK;
}

kiln_status kiln_queue_create(kiln_device *device, kiln_queue **out_queue, kiln_diag *diag)
{
    return kn_queue_make(device, NULL, out_queue, diag);
}

void kiln_queue_destroy(kiln_queue *queue)
{
    if (queue != NULL) {
        const kn_instance *in = &queue->device->driver->in;
        if (!queue->borrowed) {
            (void)kn_hal_queue_finish(in, queue->handle, NULL); /* no one is left to be notified */
        }
        kn_hal_queue_destroy(in, queue->device->handle, queue->handle);
        free(queue);
    }
}

/* The buffer is this device's, and [offset, offset + size) lies in it. */
static kiln_status check_range(const kiln_queue *queue, const kiln_buffer *buffer, size_t offset,
                               size_t size, const char *what, kiln_diag *diag)
{
    if (buffer == NULL || buffer->device != queue->device) {
        return kiln_diag_set(diag, KILN_E_INVALID, "create the buffer on the queue's device", what,
                             "the buffer is %s",
                             buffer == NULL ? "NULL" : "of another device than the queue");
    }
    if (offset > buffer->size || size > buffer->size - offset) {
        return kiln_diag_set(diag, KILN_E_INVALID, "stay within the buffer", what,
                             "%zu bytes at offset %zu do not lie in a buffer of %zu", size, offset,
                             buffer->size);
    }
    return KILN_OK;
}

static void trace_copy(const kiln_queue *queue, uint64_t start, const char *name, size_t size)
{
    kn_trace_end(queue->device->runtime->trace, start, name,
                 &(kn_trace_about){.device = queue->device, .bytes = size});
}

kiln_status kn_queue_begin_write(kiln_queue *queue, kiln_buffer *buffer, size_t offset,
                                 const void *data, size_t size, void **out_handle, kiln_diag *diag)
{
    kiln_status status = check_range(queue, buffer, offset, size, "writing a buffer", diag);
    if (status != KILN_OK || size == 0) {
        return status;
    }
    const uint64_t start = kn_trace_begin(queue->device->runtime->trace);
    status = kn_hal_queue_write(&queue->device->driver->in, queue->handle, buffer->handle, offset,
                                data, size, out_handle, diag);
    trace_copy(queue, start, "upload", size);
    return status;
}

kiln_status kn_queue_begin_read(kiln_queue *queue, kiln_buffer *buffer, size_t offset, void *data,
                                size_t size, void **out_handle, kiln_diag *diag)
{
    kiln_status status = check_range(queue, buffer, offset, size, "reading a buffer", diag);
    if (status != KILN_OK || size == 0) {
        return status;
    }
    const uint64_t start = kn_trace_begin(queue->device->runtime->trace);
    status = kn_hal_queue_read(&queue->device->driver->in, queue->handle, buffer->handle, offset,
                               data, size, out_handle, diag);
    trace_copy(queue, start, "download", size);
    return status;
}

kiln_status kiln_queue_write(kiln_queue *queue, kiln_buffer *buffer, size_t offset,
                             const void *data, size_t size, kiln_diag *diag)
{
    return kn_queue_begin_write(queue, buffer, offset, data, size, NULL, diag);
}

kiln_status kiln_queue_read(kiln_queue *queue, kiln_buffer *buffer, size_t offset, void *data,
                            size_t size, kiln_diag *diag)
{
    return kn_queue_begin_read(queue, buffer, offset, data, size, NULL, diag);
}

/* For a device that cannot fill: the pattern is written out on the host. */
static kiln_status fill_by_writing(kiln_queue *queue, kiln_buffer *buffer, size_t offset,
                                   size_t size, const void *pattern, size_t pattern_size,
                                   kiln_diag *diag)
{
    char *bytes = (char *)malloc(size);
    if (bytes == NULL) {
        return kn_no_memory(diag, "filling a buffer");
    }
    for (size_t i = 0; i < size; i += pattern_size) {
        memcpy(bytes + i, pattern, pattern_size);
    }
    kiln_status status = kn_hal_queue_write(&queue->device->driver->in, queue->handle,
                                            buffer->handle, offset, bytes, size, NULL, diag);
    free(bytes);
    return status;
}

kiln_status kiln_queue_fill(kiln_queue *queue, kiln_buffer *buffer, size_t offset,
                            const void *pattern, size_t pattern_size, size_t size, kiln_diag *diag)
{
    const kn_instance *in = &queue->device->driver->in;
    kiln_status status = check_range(queue, buffer, offset, size, "filling a buffer", diag);
    if (status != KILN_OK) {
        return status;
    }
    bool power = pattern_size > 0 && pattern_size <= 16 && (pattern_size & (pattern_size - 1)) == 0;
    if (!power || pattern == NULL || offset % pattern_size != 0 || size % pattern_size != 0) {
        return kiln_diag_set(diag, KILN_E_INVALID, "use 1, 2, 4, 8 or 16 bytes", "filling a buffer",
                             "a pattern of %zu bytes does not fit offset %zu and size %zu",
                             pattern_size, offset, size);
    }
    if (size == 0) {
        return KILN_OK;
    }
    if (!kn_instance_can(in, KILN_CAP_FILL)) {
        return fill_by_writing(queue, buffer, offset, size, pattern, pattern_size, diag);
    }
    const uint64_t start = kn_trace_begin(queue->device->runtime->trace);
    status = kn_hal_queue_fill(in, queue->handle, buffer->handle, offset, pattern, pattern_size,
                               size, diag);
    trace_copy(queue, start, "fill", size);
    return status;
}

/* For a device that cannot copy: through the host. */
static kiln_status copy_by_reading(kiln_queue *queue, kiln_buffer *from, size_t from_offset,
                                   kiln_buffer *to, size_t to_offset, size_t size, kiln_diag *diag)
{
    const kn_instance *in = &queue->device->driver->in;
    void *bytes = malloc(size);
    if (bytes == NULL) {
        return kn_no_memory(diag, "copying a buffer");
    }
    kiln_status status =
        kn_hal_queue_read(in, queue->handle, from->handle, from_offset, bytes, size, NULL, diag);
    if (status == KILN_OK) {
        status =
            kn_hal_queue_write(in, queue->handle, to->handle, to_offset, bytes, size, NULL, diag);
    }
    free(bytes);
    return status;
}

kiln_status kiln_queue_copy(kiln_queue *queue, kiln_buffer *from, size_t from_offset,
                            kiln_buffer *to, size_t to_offset, size_t size, kiln_diag *diag)
{
    const kn_instance *in = &queue->device->driver->in;
    kiln_status status = check_range(queue, from, from_offset, size, "copying a buffer", diag);
    if (status == KILN_OK) {
        status = check_range(queue, to, to_offset, size, "copying a buffer", diag);
    }
    if (status != KILN_OK || size == 0) {
        return status;
    }
    if (from == to && from_offset < to_offset + size && to_offset < from_offset + size) {
        return kiln_diag_set(diag, KILN_E_INVALID, "copy through another buffer",
                             "copying a buffer", "the two ranges overlap");
    }
    if (!kn_instance_can(in, KILN_CAP_COPY)) {
        return copy_by_reading(queue, from, from_offset, to, to_offset, size, diag);
    }
    const uint64_t start = kn_trace_begin(queue->device->runtime->trace);
    status = kn_hal_queue_copy(in, queue->handle, from->handle, from_offset, to->handle, to_offset,
                               size, diag);
    trace_copy(queue, start, "copy", size);
    return status;
}

kiln_status kiln_queue_finish(kiln_queue *queue, kiln_diag *diag)
{
    const uint64_t start = kn_trace_begin(queue->device->runtime->trace);
    kiln_status status = kn_hal_queue_finish(&queue->device->driver->in, queue->handle, diag);
    trace_copy(queue, start, "wait", 0);
    return status;
}
