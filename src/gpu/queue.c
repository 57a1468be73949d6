/* Streams and events. */
#include <stdlib.h>

#include "base/diag.h"
#include "gpu/gpu.h"

/* Both vendors number these alike. */
enum { NON_BLOCKING = 1, EVENT_DEFAULT = 0, NOT_READY = 600 };

typedef struct gpu_event {
    void *start, *end; /* start is NULL where only the end matters */
} gpu_event;

kiln_status kn_gpu_check(const kn_gpu_device *device, int result, const char *what, kiln_diag *diag)
{
    return result == 0 ? KILN_OK : device->vendor->fail(device, result, what, diag);
}

kiln_status kn_gpu_queue_create(void *opaque, void **out_queue, kiln_diag *diag)
{
    kn_gpu_device *device = (kn_gpu_device *)opaque;
    kiln_status status;
    *out_queue = NULL;
    kn_gpu_queue *queue = (kn_gpu_queue *)calloc(1, sizeof(*queue));
    if (queue == NULL) {
        return kn_no_memory(diag, "queue");
    }
    queue->device = device;
    KN_GPU_CALL(status, device, stream_create, (&queue->stream, NON_BLOCKING), diag);
    if (status != KILN_OK) {
        free(queue);
        return status;
    }
    *out_queue = queue;
    return KILN_OK;
}

void kn_gpu_queue_destroy(void *opaque, void *handle)
{
    const kn_gpu_device *device = (const kn_gpu_device *)opaque;
    kn_gpu_queue *queue = (kn_gpu_queue *)handle;
    int before = 0;
    if (queue == NULL) {
        return;
    }
    if (!queue->borrowed && device->vendor->enter(device, &before, NULL) == KILN_OK) {
        (void)device->driver->stream_synchronize(queue->stream);
        (void)device->driver->stream_destroy(queue->stream);
        device->vendor->leave(device, before);
    }
    free(queue);
}

kiln_status kn_gpu_queue_wrap(void *opaque, uint64_t native, void **out_queue, kiln_diag *diag)
{
    kn_gpu_queue *queue = (kn_gpu_queue *)calloc(1, sizeof(*queue));
    if (queue == NULL) {
        return kn_no_memory(diag, "queue");
    }
    queue->device = (kn_gpu_device *)opaque;
    /* The numbers 0, 1 and 2 are streams, too: the driver takes them as they are. */
    queue->stream = (void *)(uintptr_t)native;
    queue->borrowed = true;
    *out_queue = queue;
    return KILN_OK;
}

uint64_t kn_gpu_queue_native(void *device, void *queue)
{
    (void)device;
    return (uint64_t)(uintptr_t)((const kn_gpu_queue *)queue)->stream;
}

kiln_status kn_gpu_queue_mark(void *handle, void **out_event, kiln_diag *diag)
{
    kn_gpu_queue *queue = (kn_gpu_queue *)handle;
    int before = 0;
    kiln_status status = queue->device->vendor->enter(queue->device, &before, diag);
    if (status == KILN_OK) {
        status = kn_gpu_event_mark(queue, out_event, diag);
        queue->device->vendor->leave(queue->device, before);
    }
    return status;
}

kiln_status kn_gpu_queue_finish(void *handle, kiln_diag *diag)
{
    const kn_gpu_queue *queue = (const kn_gpu_queue *)handle;
    const kn_gpu_device *device = queue->device;
    kiln_status status;
    KN_GPU_CALL(status, device, stream_synchronize, (queue->stream), diag);
    return status;
}

kiln_status kn_gpu_queue_wait(void *handle, void *event, kiln_diag *diag)
{
    const kn_gpu_queue *queue = (const kn_gpu_queue *)handle;
    const kn_gpu_device *device = queue->device;
    kiln_status status;
    KN_GPU_CALL(status, device, stream_wait, (queue->stream, ((const gpu_event *)event)->end, 0),
                diag);
    return status;
}

kiln_status kn_gpu_event_begin(kn_gpu_queue *queue, bool timed, void **out_event, kiln_diag *diag)
{
    const kn_gpu_driver *driver = queue->device->driver;
    *out_event = NULL;
    gpu_event *event = (gpu_event *)calloc(1, sizeof(*event));
    if (event == NULL) {
        return kn_no_memory(diag, "event");
    }
    int result = driver->event_create(&event->end, EVENT_DEFAULT);
    if (result == 0 && timed) {
        result = driver->event_create(&event->start, EVENT_DEFAULT);
    }
    if (result == 0 && timed) {
        result = driver->event_record(event->start, queue->stream);
    }
    if (result != 0) {
        kn_gpu_event_destroy(queue->device, event);
        return kn_gpu_check(queue->device, result, queue->device->vendor->calls.event_create, diag);
    }
    *out_event = event;
    return KILN_OK;
}

kiln_status kn_gpu_event_end(kn_gpu_queue *queue, void *handle, kiln_diag *diag)
{
    const gpu_event *event = (const gpu_event *)handle;
    return kn_gpu_check(queue->device,
                        queue->device->driver->event_record(event->end, queue->stream),
                        queue->device->vendor->calls.event_record, diag);
}

kiln_status kn_gpu_event_mark(kn_gpu_queue *queue, void **out_event, kiln_diag *diag)
{
    void *event = NULL;
    kiln_status status = kn_gpu_event_begin(queue, false, &event, diag);
    if (status == KILN_OK && event != NULL) {
        status = kn_gpu_event_end(queue, event, diag);
    }
    if (status != KILN_OK) {
        kn_gpu_event_destroy(queue->device, event);
        return status;
    }
    *out_event = event;
    return KILN_OK;
}

bool kn_gpu_event_done(void *opaque, void *handle)
{
    const kn_gpu_device *device = (const kn_gpu_device *)opaque;
    const gpu_event *event = (const gpu_event *)handle;
    int before = 0;
    bool done = true;
    if (device->vendor->enter(device, &before, NULL) == KILN_OK) {
        done = device->driver->event_query(event->end) != NOT_READY;
        device->vendor->leave(device, before);
    }
    return done;
}

kiln_status kn_gpu_event_wait(void *opaque, void *handle, kiln_diag *diag)
{
    const kn_gpu_device *device = (const kn_gpu_device *)opaque;
    const gpu_event *event = (const gpu_event *)handle;
    kiln_status status;
    KN_GPU_CALL(status, device, event_synchronize, (event->end), diag);
    return status;
}

kiln_status kn_gpu_event_elapsed(void *opaque, void *handle, uint64_t *out_ns, kiln_diag *diag)
{
    const kn_gpu_device *device = (const kn_gpu_device *)opaque;
    const gpu_event *event = (const gpu_event *)handle;
    float ms = 0.0F;
    int before = 0;
    *out_ns = 0;
    if (event->start == NULL) {
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, NULL, "event", "a copy was not timed");
    }
    kiln_status status = device->vendor->enter(device, &before, diag);
    if (status != KILN_OK) {
        return status;
    }
    int result = device->driver->event_synchronize(event->end);
    if (result == 0) {
        result = device->driver->event_elapsed(&ms, event->start, event->end);
    }
    device->vendor->leave(device, before);
    if (result != 0) {
        return kn_gpu_check(device, result, device->vendor->calls.event_elapsed, diag);
    }
    *out_ns = ms > 0.0F && ms < 1e12F ? (uint64_t)((double)ms * 1e6) : 0;
    return KILN_OK;
}

void kn_gpu_event_destroy(void *opaque, void *handle)
{
    const kn_gpu_device *device = (const kn_gpu_device *)opaque;
    gpu_event *event = (gpu_event *)handle;
    int before = 0;
    if (event == NULL) {
        return;
    }
    if (device->vendor->enter(device, &before, NULL) == KILN_OK) {
        if (event->start != NULL) {
            (void)device->driver->event_destroy(event->start);
        }
        if (event->end != NULL) {
            (void)device->driver->event_destroy(event->end);
        }
        device->vendor->leave(device, before);
    }
    free(event);
}
