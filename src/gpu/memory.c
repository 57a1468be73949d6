/* Device memory and copies on a stream. */
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/text.h"
#include "gpu/gpu.h"

/* What is asked about a pointer; both vendors number these alike. */
enum { MEMORY_KIND = 2, IS_MANAGED = 8, DEVICE_ORDINAL = 9 };

typedef struct gpu_buffer {
    uint64_t pointer;
    size_t size;
    bool borrowed; /* the memory is others' */
} gpu_buffer;

kiln_status kn_gpu_buffer_create(void *opaque, size_t size, void **out_buffer, kiln_diag *diag)
{
    const kn_gpu_device *device = (const kn_gpu_device *)opaque;
    kiln_status status;
    *out_buffer = NULL;
    gpu_buffer *buffer = (gpu_buffer *)calloc(1, sizeof(*buffer));
    if (buffer == NULL) {
        return kn_no_memory(diag, "buffer");
    }
    buffer->size = size;
    KN_GPU_CALL(status, device, mem_alloc, (&buffer->pointer, size), diag);
    if (status != KILN_OK) {
        free(buffer);
        return status;
    }
    *out_buffer = buffer;
    return KILN_OK;
}

void kn_gpu_buffer_destroy(void *opaque, void *handle)
{
    const kn_gpu_device *device = (const kn_gpu_device *)opaque;
    gpu_buffer *buffer = (gpu_buffer *)handle;
    int before = 0;
    if (buffer == NULL) {
        return;
    }
    if (!buffer->borrowed && device->vendor->enter(device, &before, NULL) == KILN_OK) {
        (void)device->driver->mem_free(buffer->pointer); /* waits for work that uses it */
        device->vendor->leave(device, before);
    }
    free(buffer);
}

/* Whether kernels of this device reach an address. Memory of the host and managed memory, if the
 * driver knows it, is every device's. */
static kiln_status check_pointer(const kn_gpu_device *device, uint64_t pointer, kiln_diag *diag)
{
    static const char what[] = "wrapping memory in a buffer";
    const kn_gpu_driver *driver = device->driver;
    unsigned int kind = 0;
    unsigned int managed = 0; /* a driver may write one byte of it */
    int ordinal = device->ordinal;
    if (driver->pointer_attribute(&kind, MEMORY_KIND, pointer) != 0) {
        char fix[64];
        kn_text_putf(fix, sizeof(fix), "pass memory that %s has allocated", device->vendor->label);
        return kiln_diag_set(diag, KILN_E_INVALID, fix, what,
                             "the driver knows no memory at 0x%llx", (unsigned long long)pointer);
    }
    if (kind == device->device_memory &&
        driver->pointer_attribute(&managed, IS_MANAGED, pointer) == 0 && managed == 0 &&
        driver->pointer_attribute(&ordinal, DEVICE_ORDINAL, pointer) == 0 &&
        ordinal != device->ordinal) {
        return kiln_diag_set(diag, KILN_E_INVALID, "use the device that it lies on", what,
                             "the memory at 0x%llx lies on device %d, not on %d",
                             (unsigned long long)pointer, ordinal, device->ordinal);
    }
    return KILN_OK;
}

kiln_status kn_gpu_buffer_wrap(void *opaque, uint64_t address, size_t size, void **out_buffer,
                               kiln_diag *diag)
{
    const kn_gpu_device *device = (const kn_gpu_device *)opaque;
    int before = 0;
    kiln_status status = device->vendor->enter(device, &before, diag);
    if (status == KILN_OK) {
        status = check_pointer(device, address, diag);
        device->vendor->leave(device, before);
    }
    if (status != KILN_OK) {
        return status;
    }
    gpu_buffer *buffer = (gpu_buffer *)calloc(1, sizeof(*buffer));
    if (buffer == NULL) {
        return kn_no_memory(diag, "buffer");
    }
    buffer->pointer = address;
    buffer->size = size;
    buffer->borrowed = true;
    *out_buffer = buffer;
    return KILN_OK;
}

uint64_t kn_gpu_buffer_address(void *device, void *buffer)
{
    (void)device;
    return ((const gpu_buffer *)buffer)->pointer;
}

/* The end of every copy, whose call had this result: wait for it, or hand over an event. */
static kiln_status finish_copy(kn_gpu_queue *queue, int before, int result, const char *call,
                               void **out_event, kiln_diag *diag)
{
    const kn_gpu_device *device = queue->device;
    kiln_status status = kn_gpu_check(device, result, call, diag);
    if (status == KILN_OK && out_event == NULL) {
        status = kn_gpu_check(device, device->driver->stream_synchronize(queue->stream),
                              device->vendor->calls.stream_synchronize, diag);
    } else if (status == KILN_OK) {
        status = kn_gpu_event_mark(queue, out_event, diag);
        if (status != KILN_OK) {
            /* The copy is under way: a caller that hears otherwise may free its memory. */
            (void)device->driver->stream_synchronize(queue->stream);
        }
    }
    device->vendor->leave(device, before);
    return status;
}

kiln_status kn_gpu_queue_write(void *opaque, void *buffer, size_t offset, const void *data,
                               size_t size, void **out_event, kiln_diag *diag)
{
    kn_gpu_queue *queue = (kn_gpu_queue *)opaque;
    const kn_gpu_device *device = queue->device;
    int before = 0;
    kiln_status status = device->vendor->enter(device, &before, diag);
    if (status != KILN_OK) {
        return status;
    }
    const int result = device->driver->write(kn_gpu_buffer_address(NULL, buffer) + offset, data,
                                             size, queue->stream);
    return finish_copy(queue, before, result, device->vendor->calls.write, out_event, diag);
}

kiln_status kn_gpu_queue_read(void *opaque, void *buffer, size_t offset, void *data, size_t size,
                              void **out_event, kiln_diag *diag)
{
    kn_gpu_queue *queue = (kn_gpu_queue *)opaque;
    const kn_gpu_device *device = queue->device;
    int before = 0;
    kiln_status status = device->vendor->enter(device, &before, diag);
    if (status != KILN_OK) {
        return status;
    }
    const int result = device->driver->read(data, kn_gpu_buffer_address(NULL, buffer) + offset,
                                            size, queue->stream);
    return finish_copy(queue, before, result, device->vendor->calls.read, out_event, diag);
}

/* Patterns of 1, 2 and 4 bytes have a call of their own. */
static int fill_memory(const kn_gpu_device *device, uint64_t to, size_t size, const void *pattern,
                       size_t pattern_size, void *stream)
{
    unsigned char bytes[16];
    unsigned short half;
    uint32_t words[4];
    memcpy(bytes, pattern, pattern_size);
    memcpy(&half, bytes, sizeof(half));
    memcpy(words, bytes, pattern_size < sizeof(words[0]) ? 0 : pattern_size);
    switch (pattern_size) {
    case 1:
        return device->driver->fill_8(to, bytes[0], size, stream);
    case 2:
        return device->driver->fill_16(to, half, size / 2, stream);
    case 4:
        return device->driver->fill_32(to, words[0], size / 4, stream);
    default:
        return device->vendor->fill_words(device, to, words, pattern_size / 4, size / pattern_size,
                                          stream);
    }
}

kiln_status kn_gpu_queue_fill(void *opaque, void *buffer, size_t offset, const void *pattern,
                              size_t pattern_size, size_t size, kiln_diag *diag)
{
    kn_gpu_queue *queue = (kn_gpu_queue *)opaque;
    const kn_gpu_device *device = queue->device;
    int before = 0;
    kiln_status status = device->vendor->enter(device, &before, diag);
    if (status != KILN_OK) {
        return status;
    }
    const int result = fill_memory(device, kn_gpu_buffer_address(NULL, buffer) + offset, size,
                                   pattern, pattern_size, queue->stream);
    device->vendor->leave(device, before);
    return kn_gpu_check(device, result, device->vendor->calls.fill_8, diag);
}

kiln_status kn_gpu_queue_copy(void *opaque, void *from, size_t from_offset, void *to,
                              size_t to_offset, size_t size, kiln_diag *diag)
{
    kn_gpu_queue *queue = (kn_gpu_queue *)opaque;
    const kn_gpu_device *device = queue->device;
    kiln_status status;
    KN_GPU_CALL(status, device, copy,
                (kn_gpu_buffer_address(NULL, to) + to_offset,
                 kn_gpu_buffer_address(NULL, from) + from_offset, size, queue->stream),
                diag);
    return status;
}
