/* Memory and queues that other libraries of the device know: kiln/unstable/native.h. */
#include "kiln/unstable/native.h"

#include "base/diag.h"
#include "core/launch/buffer.h"

static kiln_status check_capability(const kiln_device *device, uint32_t cap, const char *what,
                                    const char *thing, kiln_diag *diag)
{
    const kn_instance *in = &device->driver->in;
    return kn_instance_can(in, cap)
               ? KILN_OK
               : kiln_diag_set(diag, KILN_E_UNSUPPORTED, "use a device of another backend: cuda",
                               what, "%s has no %s that other libraries could use",
                               in->backend->name, thing);
}

kiln_status kiln_buffer_address(const kiln_buffer *buffer, uint64_t *out_address, kiln_diag *diag)
{
    const kiln_device *device = buffer->device;
    *out_address = 0;
    kiln_status status = check_capability(device, KILN_CAP_NATIVE_MEMORY,
                                          "asking for a buffer's address", "addresses", diag);
    if (status == KILN_OK) {
        *out_address = kn_hal_buffer_address(&device->driver->in, device->handle, buffer->handle);
    }
    return status;
}

kiln_status kiln_buffer_wrap(kiln_device *device, uint64_t address, size_t size,
                             kiln_buffer **out_buffer, kiln_diag *diag)
{
    static const char what[] = "wrapping memory in a buffer";
    *out_buffer = NULL;
    kiln_status status = check_capability(device, KILN_CAP_NATIVE_MEMORY, what, "addresses", diag);
    if (status != KILN_OK) {
        return status;
    }
    if (address == 0 || size == 0 || size > UINT64_MAX - address) {
        return kiln_diag_set(diag, KILN_E_INVALID, "pass memory that has been allocated", what,
                             "there are no %zu bytes at address 0x%llx", size,
                             (unsigned long long)address);
    }
    return kn_buffer_make(device, size, address, out_buffer, diag);
}

kiln_status kiln_queue_native(const kiln_queue *queue, uint64_t *out_native, kiln_diag *diag)
{
    const kiln_device *device = queue->device;
    *out_native = 0;
    kiln_status status = check_capability(device, KILN_CAP_NATIVE_QUEUE,
                                          "asking for a queue's stream", "queues", diag);
    if (status == KILN_OK) {
        *out_native = kn_hal_queue_native(&device->driver->in, device->handle, queue->handle);
    }
    return status;
}

kiln_status kiln_queue_wrap(kiln_device *device, uint64_t native, kiln_queue **out_queue,
                            kiln_diag *diag)
{
    *out_queue = NULL;
    kiln_status status = check_capability(device, KILN_CAP_NATIVE_QUEUE,
                                          "making a queue of a stream", "queues", diag);
    return status == KILN_OK ? kn_queue_make(device, &native, out_queue, diag) : status;
}

kiln_status kiln_queue_wait_queue(kiln_queue *queue, kiln_queue *before, kiln_diag *diag)
{
    const kn_instance *in = &queue->device->driver->in;
    void *event = NULL;
    if (queue->device != before->device) {
        return kiln_diag_set(diag, KILN_E_INVALID, "finish the first queue", "ordering two queues",
                             "they are of two devices");
    }
    if (queue == before) {
        return KILN_OK;
    }
    if (!kn_instance_can(in, KILN_CAP_NATIVE_QUEUE)) {
        return kiln_queue_finish(before, diag);
    }
    kiln_status status = kn_hal_queue_mark(in, before->handle, &event, diag);
    if (status == KILN_OK) {
        status = kn_hal_queue_wait(in, queue->handle, event, diag);
        kn_hal_event_destroy(in, queue->device->handle, event);
    }
    return status;
}
