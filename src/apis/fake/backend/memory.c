/* Buffers, and moving bytes in and out of them. Everything is done at once; events are done. */
#include <stdlib.h>
#include <string.h>

#include "apis/fake/backend/fake.h"

kiln_status kn_fake_buffer_create(void *device, size_t size, void **out_buffer, kiln_diag *diag)
{
    kn_fake_device *fake = (kn_fake_device *)device;
    kiln_status status = kn_fake_call(&fake->instance->faults, FAKE_BUFFER, NULL, diag);
    if (status != KILN_OK) {
        return status;
    }
    kn_fake_buffer *buffer = (kn_fake_buffer *)calloc(1, sizeof(*buffer));
    if (buffer != NULL) {
        buffer->size = size;
        buffer->bytes = (unsigned char *)calloc(1, size);
    }
    if (buffer == NULL || buffer->bytes == NULL) {
        free(buffer);
        return kiln_diag_set(diag, KILN_E_NOMEM, NULL, "fake", "no memory for %zu bytes", size);
    }
    *out_buffer = buffer;
    return KILN_OK;
}

void kn_fake_buffer_destroy(void *device, void *buffer)
{
    (void)device;
    kn_fake_buffer *fake = (kn_fake_buffer *)buffer;
    if (!fake->borrowed) {
        free(fake->bytes);
    }
    free(fake);
}

kiln_status kn_fake_buffer_wrap(void *device, uint64_t address, size_t size, void **out_buffer,
                                kiln_diag *diag)
{
    kn_fake_device *fake = (kn_fake_device *)device;
    kiln_status status = kn_fake_call(&fake->instance->faults, FAKE_BUFFER, NULL, diag);
    if (status != KILN_OK) {
        return status;
    }
    kn_fake_buffer *buffer = (kn_fake_buffer *)calloc(1, sizeof(*buffer));
    if (buffer == NULL) {
        return kiln_diag_set(diag, KILN_E_NOMEM, NULL, "fake", "no memory for a buffer");
    }
    buffer->size = size;
    buffer->bytes = (unsigned char *)(uintptr_t)address;
    buffer->borrowed = true;
    *out_buffer = buffer;
    return KILN_OK;
}

uint64_t kn_fake_buffer_address(void *device, void *buffer)
{
    (void)device;
    return (uint64_t)(uintptr_t)((const kn_fake_buffer *)buffer)->bytes;
}

static kiln_status finish_event(const kn_fake_queue *queue, void **out_event, kiln_diag *diag)
{
    return out_event != NULL ? kn_fake_event_create(queue->device, out_event, 0, diag) : KILN_OK;
}

kiln_status kn_fake_queue_write(void *queue, void *buffer, size_t offset, const void *data,
                                size_t size, void **out_event, kiln_diag *diag)
{
    kn_fake_queue *fake = (kn_fake_queue *)queue;
    kiln_status status = kn_fake_call(&fake->device->instance->faults, FAKE_WRITE, NULL, diag);
    if (status != KILN_OK) {
        return status;
    }
    memcpy(((kn_fake_buffer *)buffer)->bytes + offset, data, size);
    return finish_event(fake, out_event, diag);
}

kiln_status kn_fake_queue_read(void *queue, void *buffer, size_t offset, void *data, size_t size,
                               void **out_event, kiln_diag *diag)
{
    kn_fake_queue *fake = (kn_fake_queue *)queue;
    kiln_status status = kn_fake_call(&fake->device->instance->faults, FAKE_READ, NULL, diag);
    if (status != KILN_OK) {
        return status;
    }
    memcpy(data, ((const kn_fake_buffer *)buffer)->bytes + offset, size);
    return finish_event(fake, out_event, diag);
}

kiln_status kn_fake_queue_fill(void *queue, void *buffer, size_t offset, const void *pattern,
                               size_t pattern_size, size_t size, kiln_diag *diag)
{
    (void)queue;
    (void)diag;
    unsigned char *bytes = ((kn_fake_buffer *)buffer)->bytes + offset;
    for (size_t i = 0; i < size; i += pattern_size) {
        memcpy(bytes + i, pattern, pattern_size);
    }
    return KILN_OK;
}

kiln_status kn_fake_queue_copy(void *queue, void *from, size_t from_offset, void *to,
                               size_t to_offset, size_t size, kiln_diag *diag)
{
    (void)queue;
    (void)diag;
    memmove(((kn_fake_buffer *)to)->bytes + to_offset,
            ((kn_fake_buffer *)from)->bytes + from_offset, size);
    return KILN_OK;
}
