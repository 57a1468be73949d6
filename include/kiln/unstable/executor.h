/* A stream of launches with host data, several in flight: while one runs, the next one's input is
 * uploaded and the one before is downloaded.
 *
 *     kiln_executor_create(device, NULL, &executor, &diag);
 *     for each piece of work:
 *         kiln_executor_submit(executor, &work, &ticket, &diag);  waits while three are in flight
 *     kiln_ticket_wait(ticket, &diag);                            its output, or its error
 *     kiln_ticket_release(ticket);
 *     kiln_executor_destroy(executor);
 *
 * Launches run in the order of submission; uploads and downloads are in that order among
 * themselves. What goes wrong with one submission belongs to its ticket; the others go on. Work
 * that must see another's result waits for its ticket first, or keeps the result in a buffer of its
 * own that both launches name: launches follow one another. */
#ifndef KILN_UNSTABLE_EXECUTOR_H
#define KILN_UNSTABLE_EXECUTOR_H

#include "kiln/launch.h"

KILN_BEGIN_DECLS

typedef struct kiln_executor kiln_executor; /* create/destroy */
typedef struct kiln_ticket kiln_ticket;     /* retain/release */

#define KILN_IN_FLIGHT_MAX 64u
#define KILN_WORK_ARGS_MAX 64u

/* Zero it and set struct_size; then what you want. */
typedef struct kiln_executor_options {
    size_t struct_size;
    uint32_t in_flight;  /* submissions accepted and not done; 0: 3; at most KILN_IN_FLIGHT_MAX */
    uint64_t idle_bytes; /* device memory that buffers nobody uses may hold; 0: no limit */
} kiln_executor_options;

/* Starts two threads and three queues for `device`. NULL options mean none.
 * Threads: any.   Blocks: driver.
 * Owns: *out_executor is yours, kiln_executor_destroy(), before the runtime.
 * Fails: KILN_E_INVALID (options), KILN_E_NOMEM, KILN_E_DEVICE_LOST. */
KILN_API KILN_MUST_CHECK kiln_status kiln_executor_create(kiln_device *device,
                                                          const kiln_executor_options *options,
                                                          kiln_executor **out_executor,
                                                          kiln_diag *diag);

/* Cancels what has not begun (KILN_E_CANCELLED on its ticket, and from a kiln_executor_submit that
 * waits for room), finishes what has, and ends the threads. Tickets outlive it.
 * Threads: any but the executor's own (a callback), once, with no later call on the executor.
 * Blocks: until the work begun is done.   Owns: the executor ends.   Fails: never. */
KILN_API void kiln_executor_destroy(kiln_executor *executor);

/* One argument of a piece of work. A buffer is yours (`buffer`), or one of the executor's pool for
 * the time of this submission (`buffer` NULL; contents undefined without `input`). */
typedef struct kiln_work_arg {
    kiln_arg_kind kind;
    kiln_buffer *buffer; /* KILN_ARG_BUFFER: yours, or NULL */
    size_t offset;       /* into a buffer of yours */
    const void *value;   /* KILN_ARG_VALUE: its bytes */
    size_t size;         /* of the value, the work-group memory, the pool's buffer, the copies */
    const void *input;   /* KILN_ARG_BUFFER: `size` bytes put there before the launch, or NULL */
    void *output;        /* KILN_ARG_BUFFER: gets `size` bytes after the launch, or NULL */
} kiln_work_arg;

/* Called when a submission is done, with its status and (unless KILN_OK) its diag, on a thread of
 * the executor, before a wait for its ticket returns. It may call kiln_executor_try_submit; it must
 * not wait for a ticket, nor destroy the executor. */
typedef void kiln_work_done_fn(void *user, kiln_status status, const kiln_diag *diag);

/* One launch with its data; shape as in kiln_launch. */
typedef struct kiln_work {
    size_t struct_size;
    kiln_program *program;
    const char *entry;
    uint32_t dims;
    uint64_t global[3];
    uint64_t local[3];
    uint64_t offset[3];
    uint32_t shared_bytes;
    const kiln_work_arg *args;
    size_t arg_count;        /* at most KILN_WORK_ARGS_MAX */
    kiln_work_done_fn *done; /* may be NULL */
    void *user;
} kiln_work;

/* Accepts a piece of work. With as many in flight as the executor takes, submit waits for room and
 * try_submit gives KILN_E_BUSY without a diag. Arguments that the launch refuses are the ticket's
 * failure, not this call's.
 * Threads: any.   Blocks: submit: while the executor is full; try_submit: never.
 * Owns: entry, values and the list are copied, the program is retained; what `input` and `output`
 * point to and buffers of yours must live until the work is done. `out_ticket` may be NULL; else
 * *out_ticket is yours, kiln_ticket_release().
 * Fails: KILN_E_INVALID (no program or one of another device, too many arguments), KILN_E_BUSY,
 * KILN_E_CANCELLED (the executor is being destroyed), KILN_E_NOMEM. */
KILN_API KILN_MUST_CHECK kiln_status kiln_executor_submit(kiln_executor *executor,
                                                          const kiln_work *work,
                                                          kiln_ticket **out_ticket,
                                                          kiln_diag *diag);
KILN_API KILN_MUST_CHECK kiln_status kiln_executor_try_submit(kiln_executor *executor,
                                                              const kiln_work *work,
                                                              kiln_ticket **out_ticket,
                                                              kiln_diag *diag);

/* Waits until nothing is in flight. Failures are on the tickets.
 * Threads: any but the executor's own.   Blocks: until then.   Owns: nothing.   Fails: never. */
KILN_API void kiln_executor_drain(kiln_executor *executor);

/* Figures of an executor. */
typedef struct kiln_executor_stats {
    size_t struct_size;
    uint64_t submitted, completed, failed, cancelled; /* completed: with KILN_OK */
    uint64_t refused;                                 /* KILN_E_BUSY */
    uint64_t waited;                                  /* submits that had to wait for room */
    uint32_t in_flight, in_flight_high;
    uint32_t pool_buffers;
    uint64_t pool_creates, pool_reuses;
    uint64_t pool_bytes, pool_bytes_high; /* held from the device */
    uint64_t used_bytes, used_bytes_high; /* of these, in use by work */
} kiln_executor_stats;

/* Figures since the executor began. Set out_stats->struct_size first.
 * Threads: any.   Blocks: never.   Owns: *out_stats is the caller's struct.
 * Fails: KILN_E_INVALID (struct_size). */
KILN_API KILN_MUST_CHECK kiln_status kiln_executor_get_stats(kiln_executor *executor,
                                                             kiln_executor_stats *out_stats,
                                                             kiln_diag *diag);

/* True when the submission is done, one way or the other.
 * Threads: any.   Blocks: never.   Owns: nothing.   Fails: never. */
KILN_API bool kiln_ticket_done(kiln_ticket *ticket);

/* Waits until the submission is done and gives its status and diag, as often as asked.
 * Threads: any but the executor's own.   Blocks: until then.   Owns: nothing.
 * Fails: the submission's own failure; KILN_E_CANCELLED if the executor was destroyed first. */
KILN_API KILN_MUST_CHECK kiln_status kiln_ticket_wait(kiln_ticket *ticket, kiln_diag *diag);

/* Another reference; one reference less.
 * Threads: any.   Blocks: never.
 * Owns: a released ticket is not the caller's any more; the work goes on.   Fails: never. */
KILN_API kiln_ticket *kiln_ticket_retain(kiln_ticket *ticket);
KILN_API void kiln_ticket_release(kiln_ticket *ticket);

KILN_END_DECLS

#endif
