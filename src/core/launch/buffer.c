/* Buffers: device memory and the device it is on. */
#include "core/launch/buffer.h"

#include <stdlib.h>

#include "kiln/unstable/native.h"

#include "base/diag.h"

kiln_status kn_buffer_make(kiln_device *device, size_t size, uint64_t address,
                           kiln_buffer **out_buffer, kiln_diag *diag)
{
    const kn_instance *in = &device->driver->in;
    void *handle = NULL;
    kiln_status status = kn_device_handle(device, &handle, diag);
    if (status != KILN_OK) {
        return status;
    }
    kiln_buffer *buffer = (kiln_buffer *)calloc(1, sizeof(*buffer));
    if (buffer == NULL) {
        return kn_no_memory(diag, "creating a buffer");
    }
    buffer->device = device;
    buffer->size = size;
    status = address == 0 ? kn_hal_buffer_create(in, handle, size, &buffer->handle, diag)
                          : kn_hal_buffer_wrap(in, handle, address, size, &buffer->handle, diag);
    if (status != KILN_OK) {
        free(buffer);
        return status;
    }
    *out_buffer = buffer;
    return KILN_OK;
}

kiln_status kiln_buffer_create(kiln_device *device, size_t size, kiln_buffer **out_buffer,
                               kiln_diag *diag)
{
    *out_buffer = NULL;
    if (size == 0 || (device->info.max_buffer_bytes != 0 && size > device->info.max_buffer_bytes)) {
        return kiln_diag_set(diag, KILN_E_INVALID, "ask for less, or for at least one byte",
                             "creating a buffer", "%zu bytes; %s takes 1 to %llu", size,
                             device->info.name, (unsigned long long)device->info.max_buffer_bytes);
    }
    return kn_buffer_make(device, size, 0, out_buffer, diag);
}

void kiln_buffer_destroy(kiln_buffer *buffer)
{
    if (buffer != NULL) {
        kn_hal_buffer_destroy(&buffer->device->driver->in, buffer->device->handle, buffer->handle);
        free(buffer);
    }
}

size_t kiln_buffer_size(const kiln_buffer *buffer)
{
    return buffer->size;
}

kiln_device *kiln_buffer_device(const kiln_buffer *buffer)
{
    return buffer->device;
}
