/* Buffers, queues and events inside core.
 *
 * Those of queues are in queue.c. */
#ifndef KILN_CORE_BUFFER_H
#define KILN_CORE_BUFFER_H

#include "core/runtime/runtime.h"

struct kiln_buffer {
    kiln_device *device;
    void *handle;
    size_t size;
};

struct kiln_queue {
    kiln_device *device;
    void *handle;
    bool borrowed; /* in a stream that others own: its end waits for nothing */
};

/* kiln_buffer_create; with an `address` that is not 0, a buffer over the memory there. */
kiln_status kn_buffer_make(kiln_device *device, size_t size, uint64_t address,
                           kiln_buffer **out_buffer, kiln_diag *diag);
/* kiln_queue_create; with `native`, a queue in that stream of others. */
kiln_status kn_queue_make(kiln_device *device, const uint64_t *native, kiln_queue **out_queue,
                          kiln_diag *diag);

/* kiln_queue_write and kiln_queue_read that leave the copy to the queue: the bytes must live until
 * the backend's event is done. `size` is not 0. */
kiln_status kn_queue_begin_write(kiln_queue *queue, kiln_buffer *buffer, size_t offset,
                                 const void *data, size_t size, void **out_handle, kiln_diag *diag);
kiln_status kn_queue_begin_read(kiln_queue *queue, kiln_buffer *buffer, size_t offset, void *data,
                                size_t size, void **out_handle, kiln_diag *diag);

#endif
