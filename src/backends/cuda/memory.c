/* Device memory and copies on a stream. */
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/instance.h"
#include "base/diag.h"

typedef struct cuda_buffer {
    CUdeviceptr pointer;
    size_t size;
    bool borrowed; /* the memory is others' */
} cuda_buffer;

kiln_status kn_cuda_buffer_create(void *opaque, size_t size, void **out_buffer, kiln_diag *diag)
{
    kn_cuda_device *device = (kn_cuda_device *)opaque;
    *out_buffer = NULL;
    cuda_buffer *buffer = (cuda_buffer *)calloc(1, sizeof(*buffer));
    if (buffer == NULL) {
        return kn_no_memory(diag, "buffer");
    }
    buffer->size = size;
    kiln_status status = kn_cuda_enter(device, diag);
    if (status == KILN_OK) {
        CUresult result = device->cuda->driver.cuMemAlloc_v2(&buffer->pointer, size);
        kn_cuda_leave(device);
        if (result != CUDA_SUCCESS) {
            status = kn_cuda_fail(device->cuda, result, "cuMemAlloc", diag);
        }
    }
    if (status != KILN_OK) {
        free(buffer);
        return status;
    }
    *out_buffer = buffer;
    return KILN_OK;
}

void kn_cuda_buffer_destroy(void *opaque, void *handle)
{
    kn_cuda_device *device = (kn_cuda_device *)opaque;
    cuda_buffer *buffer = (cuda_buffer *)handle;
    if (buffer == NULL) {
        return;
    }
    if (!buffer->borrowed && kn_cuda_enter(device, NULL) == KILN_OK) {
        (void)device->cuda->driver.cuMemFree_v2(buffer->pointer); /* waits for work that uses it */
        kn_cuda_leave(device);
    }
    free(buffer);
}

/* Whether kernels of this device reach an address. Memory of the host and managed memory, if the
 * driver knows it, is every device's. */
static kiln_status check_pointer(const kn_cuda_device *device, CUdeviceptr pointer, kiln_diag *diag)
{
    static const char what[] = "wrapping memory in a buffer";
    const kn_cuda_driver *driver = &device->cuda->driver;
    unsigned int type = 0;
    unsigned int managed = 0; /* the driver writes one byte of it */
    int ordinal = device->device;
    if (driver->cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer) !=
        CUDA_SUCCESS) {
        return kiln_diag_set(diag, KILN_E_INVALID, "pass memory that CUDA has allocated", what,
                             "the driver knows no memory at 0x%llx", (unsigned long long)pointer);
    }
    if (type == CU_MEMORYTYPE_DEVICE &&
        driver->cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, pointer) ==
            CUDA_SUCCESS &&
        managed == 0 &&
        driver->cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer) ==
            CUDA_SUCCESS &&
        ordinal != device->device) {
        return kiln_diag_set(diag, KILN_E_INVALID, "use the device that it lies on", what,
                             "the memory at 0x%llx lies on device %d, not on %d",
                             (unsigned long long)pointer, ordinal, device->device);
    }
    return KILN_OK;
}

kiln_status kn_cuda_buffer_wrap(void *opaque, uint64_t address, size_t size, void **out_buffer,
                                kiln_diag *diag)
{
    const kn_cuda_device *device = (const kn_cuda_device *)opaque;
    kiln_status status = kn_cuda_enter(device, diag);
    if (status == KILN_OK) {
        status = check_pointer(device, address, diag);
        kn_cuda_leave(device);
    }
    if (status != KILN_OK) {
        return status;
    }
    cuda_buffer *buffer = (cuda_buffer *)calloc(1, sizeof(*buffer));
    if (buffer == NULL) {
        return kn_no_memory(diag, "buffer");
    }
    buffer->pointer = address;
    buffer->size = size;
    buffer->borrowed = true;
    *out_buffer = buffer;
    return KILN_OK;
}

uint64_t kn_cuda_buffer_address(void *device, void *buffer)
{
    (void)device;
    return kn_cuda_buffer_pointer(buffer);
}

CUdeviceptr kn_cuda_buffer_pointer(const void *buffer)
{
    return ((const cuda_buffer *)buffer)->pointer;
}

/* The end of every copy: wait for it, or hand over an event. */
static kiln_status finish_copy(kn_cuda_queue *queue, void **out_event, kiln_diag *diag)
{
    if (out_event == NULL) {
        CUresult result = queue->device->cuda->driver.cuStreamSynchronize(queue->stream);
        return result == CUDA_SUCCESS
                   ? KILN_OK
                   : kn_cuda_fail(queue->device->cuda, result, "cuStreamSynchronize", diag);
    }
    void *event = NULL;
    kiln_status status = kn_cuda_event_begin(queue, false, &event, diag);
    if (status == KILN_OK) {
        status = kn_cuda_event_end(queue, event, diag);
    }
    if (status != KILN_OK) {
        /* The copy is under way, and the caller, who is informed that it is not, may free its
         * memory.
         */
        (void)queue->device->cuda->driver.cuStreamSynchronize(queue->stream);
        kn_cuda_event_destroy(queue->device, event);
        return status;
    }
    *out_event = event;
    return KILN_OK;
}

kiln_status kn_cuda_queue_write(void *opaque, void *buffer, size_t offset, const void *data,
                                size_t size, void **out_event, kiln_diag *diag)
{
    kn_cuda_queue *queue = (kn_cuda_queue *)opaque;
    kiln_status status = kn_cuda_enter(queue->device, diag);
    if (status != KILN_OK) {
        return status;
    }
    CUresult result = queue->device->cuda->driver.cuMemcpyHtoDAsync_v2(
        kn_cuda_buffer_pointer(buffer) + offset, data, size, queue->stream);
    status = result == CUDA_SUCCESS
                 ? finish_copy(queue, out_event, diag)
                 : kn_cuda_fail(queue->device->cuda, result, "cuMemcpyHtoDAsync", diag);
    kn_cuda_leave(queue->device);
    return status;
}

kiln_status kn_cuda_queue_read(void *opaque, void *buffer, size_t offset, void *data, size_t size,
                               void **out_event, kiln_diag *diag)
{
    kn_cuda_queue *queue = (kn_cuda_queue *)opaque;
    kiln_status status = kn_cuda_enter(queue->device, diag);
    if (status != KILN_OK) {
        return status;
    }
    CUresult result = queue->device->cuda->driver.cuMemcpyDtoHAsync_v2(
        data, kn_cuda_buffer_pointer(buffer) + offset, size, queue->stream);
    status = result == CUDA_SUCCESS
                 ? finish_copy(queue, out_event, diag)
                 : kn_cuda_fail(queue->device->cuda, result, "cuMemcpyDtoHAsync", diag);
    kn_cuda_leave(queue->device);
    return status;
}

/* Patterns of 1, 2 and 4 bytes have a call of their own; 8 and 16 are columns of 32-bit words. */
static CUresult fill_memory(const kn_cuda_driver *driver, CUdeviceptr to, size_t size,
                            const void *pattern, size_t pattern_size, CUstream stream)
{
    unsigned char bytes[16];
    unsigned short half;
    unsigned int word;
    memcpy(bytes, pattern, pattern_size);
    switch (pattern_size) {
    case 1:
        return driver->cuMemsetD8Async(to, bytes[0], size, stream);
    case 2:
        memcpy(&half, bytes, sizeof(half));
        return driver->cuMemsetD16Async(to, half, size / 2, stream);
    case 4:
        memcpy(&word, bytes, sizeof(word));
        return driver->cuMemsetD32Async(to, word, size / 4, stream);
    default:
        break;
    }
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < pattern_size / 4 && result == CUDA_SUCCESS; i++) {
        memcpy(&word, bytes + 4 * i, sizeof(word));
        result = driver->cuMemsetD2D32Async(to + 4 * i, pattern_size, word, 1, size / pattern_size,
                                            stream);
    }
    return result;
}

kiln_status kn_cuda_queue_fill(void *opaque, void *buffer, size_t offset, const void *pattern,
                               size_t pattern_size, size_t size, kiln_diag *diag)
{
    kn_cuda_queue *queue = (kn_cuda_queue *)opaque;
    kiln_status status = kn_cuda_enter(queue->device, diag);
    if (status != KILN_OK) {
        return status;
    }
    CUresult result =
        fill_memory(&queue->device->cuda->driver, kn_cuda_buffer_pointer(buffer) + offset, size,
                    pattern, pattern_size, queue->stream);
    kn_cuda_leave(queue->device);
    return result == CUDA_SUCCESS ? KILN_OK
                                  : kn_cuda_fail(queue->device->cuda, result, "cuMemset", diag);
}

kiln_status kn_cuda_queue_copy(void *opaque, void *from, size_t from_offset, void *to,
                               size_t to_offset, size_t size, kiln_diag *diag)
{
    kn_cuda_queue *queue = (kn_cuda_queue *)opaque;
    kiln_status status = kn_cuda_enter(queue->device, diag);
    if (status != KILN_OK) {
        return status;
    }
    CUresult result = queue->device->cuda->driver.cuMemcpyDtoDAsync_v2(
        kn_cuda_buffer_pointer(to) + to_offset, kn_cuda_buffer_pointer(from) + from_offset, size,
        queue->stream);
    kn_cuda_leave(queue->device);
    return result == CUDA_SUCCESS
               ? KILN_OK
               : kn_cuda_fail(queue->device->cuda, result, "cuMemcpyDtoDAsync", diag);
}
