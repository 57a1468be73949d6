/* Buffers, in-order queues, launches and timing. */
#ifndef KILN_LAUNCH_H
#define KILN_LAUNCH_H

#include "kiln/program.h"

KILN_BEGIN_DECLS

typedef struct kiln_buffer kiln_buffer; /* create/destroy */
typedef struct kiln_queue kiln_queue;   /* create/destroy */
typedef struct kiln_event kiln_event;   /* retain/release */

/* Device memory of `size` bytes (at least 1), contents undefined.
 * Threads: any.   Blocks: driver.
 * Owns: *out_buffer is yours, kiln_buffer_destroy(), which waits for work that uses it.
 * Fails: KILN_E_INVALID, KILN_E_NOMEM (device memory), KILN_E_DEVICE_LOST. */
KILN_API KILN_MUST_CHECK kiln_status kiln_buffer_create(kiln_device *device, size_t size,
                                                        kiln_buffer **out_buffer, kiln_diag *diag);
KILN_API void kiln_buffer_destroy(kiln_buffer *buffer);
KILN_API size_t kiln_buffer_size(const kiln_buffer *buffer);

/* A queue: what is put in runs in that order, one after the other.
 * Threads: one queue may be used from many threads; the order is then theirs to agree on.
 * Blocks: driver; destroy waits for what is in it.
 * Owns: *out_queue is yours, kiln_queue_destroy().
 * Fails: KILN_E_NOMEM, KILN_E_DEVICE_LOST. */
KILN_API KILN_MUST_CHECK kiln_status kiln_queue_create(kiln_device *device, kiln_queue **out_queue,
                                                       kiln_diag *diag);
KILN_API void kiln_queue_destroy(kiln_queue *queue);

/* Copies between host and device, returning when the data has been taken or delivered; and fills
 * with a repeated pattern of 1, 2, 4, 8 or 16 bytes (offset and size multiples of it).
 * Threads: any.   Blocks: earlier work in the queue, the copy.
 * Owns: borrows `data` for the call.
 * Fails: KILN_E_INVALID (range, buffer of another device), KILN_E_DEVICE_LOST. */
KILN_API KILN_MUST_CHECK kiln_status kiln_queue_write(kiln_queue *queue, kiln_buffer *buffer,
                                                      size_t offset, const void *data, size_t size,
                                                      kiln_diag *diag);
KILN_API KILN_MUST_CHECK kiln_status kiln_queue_read(kiln_queue *queue, kiln_buffer *buffer,
                                                     size_t offset, void *data, size_t size,
                                                     kiln_diag *diag);
KILN_API KILN_MUST_CHECK kiln_status kiln_queue_fill(kiln_queue *queue, kiln_buffer *buffer,
                                                     size_t offset, const void *pattern,
                                                     size_t pattern_size, size_t size,
                                                     kiln_diag *diag);

/* Copies between two buffers of the queue's device (or within one, ranges apart), in queue order.
 * Threads: any.   Blocks: never, where the device can copy by itself; else as read and write do.
 * Owns: nothing; both buffers must stay alive until the queue has passed the copy.
 * Fails: KILN_E_INVALID (range, overlap, buffer of another device), KILN_E_NOMEM,
 * KILN_E_DEVICE_LOST. */
KILN_API KILN_MUST_CHECK kiln_status kiln_queue_copy(kiln_queue *queue, kiln_buffer *from,
                                                     size_t from_offset, kiln_buffer *to,
                                                     size_t to_offset, size_t size,
                                                     kiln_diag *diag);

/* What a kernel takes, where the backend can tell. */
typedef enum kiln_arg_kind {
    KILN_ARG_UNKNOWN = 0,
    KILN_ARG_BUFFER,
    KILN_ARG_VALUE,
    KILN_ARG_LOCAL, /* work-group memory of a size given at launch */
} kiln_arg_kind;

/* One argument of a launch. */
typedef struct kiln_arg {
    kiln_arg_kind kind;
    kiln_buffer *buffer; /* KILN_ARG_BUFFER */
    size_t offset;       /* KILN_ARG_BUFFER: byte offset, where the backend can */
    const void *value;   /* KILN_ARG_VALUE */
    size_t size;         /* KILN_ARG_VALUE, KILN_ARG_LOCAL */
} kiln_arg;

/* The shape of a launch. `global` counts work-items (not groups) and is not rounded: each
 * dimension must be a multiple of `local` unless the device says otherwise. A `local` of zeros lets
 * the backend choose. Dimensions past `dims` are 1. */
typedef struct kiln_launch {
    size_t struct_size;
    uint32_t dims; /* 1 to 3 */
    uint64_t global[3];
    uint64_t local[3];
    uint64_t offset[3];
    const kiln_arg *args;
    size_t arg_count;
    uint32_t shared_bytes; /* dynamic work-group memory (CUDA) */
    bool cooperative;    /* all groups run at once and may wait for each other (grid sync); CUDA */
    uint32_t cluster[3]; /* groups in a thread block cluster (CUDA, sm_90 on); zeros: none */
} kiln_launch;

/* Launches `entry` of `program`. Buffers must stay alive until the queue has passed the launch.
 * Threads: any.   Blocks: a slow driver's first launch of a new shape.
 * Owns: arguments are copied. `out_event` may be NULL; else *out_event is yours,
 * kiln_event_release().
 * Fails: KILN_E_INVALID (unknown entry, wrong count, kind or size of arguments, buffer or program
 * of another device, shape), KILN_E_DEVICE_LOST, KILN_E_NOMEM. */
KILN_API KILN_MUST_CHECK kiln_status kiln_queue_launch(kiln_queue *queue, kiln_program *program,
                                                       const char *entry, const kiln_launch *launch,
                                                       kiln_event **out_event, kiln_diag *diag);

/* Waits until everything in the queue is done.
 * Threads: any.   Blocks: until then.   Owns: nothing.
 * Fails: the first failure of the work waited for. */
KILN_API KILN_MUST_CHECK kiln_status kiln_queue_finish(kiln_queue *queue, kiln_diag *diag);

/* Orders two queues of one device: what is put into `queue` from now on begins when the launch
 * that `event` belongs to is done.
 * Threads: any.
 * Blocks: never, where the device's queues can wait by themselves; else until the launch is done.
 * Owns: nothing; the event may be released right after.
 * Fails: KILN_E_INVALID (an event of another device), KILN_E_DEVICE_LOST, KILN_E_NOMEM. */
KILN_API KILN_MUST_CHECK kiln_status kiln_queue_wait_event(kiln_queue *queue, kiln_event *event,
                                                           kiln_diag *diag);

/* Waits for one launch; reports how long it ran on the device, in nanoseconds, by the device's own
 * clock where it has one (info.timestamps), else by the host's.
 * Threads: any.   Blocks: until the launch is done.   Owns: nothing.
 * Fails: the launch's own failure. */
KILN_API KILN_MUST_CHECK kiln_status kiln_event_wait(kiln_event *event, kiln_diag *diag);
KILN_API KILN_MUST_CHECK kiln_status kiln_event_elapsed(kiln_event *event, uint64_t *out_ns,
                                                        kiln_diag *diag);
KILN_API kiln_event *kiln_event_retain(kiln_event *event);
KILN_API void kiln_event_release(kiln_event *event);

KILN_END_DECLS

#endif
