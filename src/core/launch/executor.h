/* The executor inside core. A submission lives in a slot; there are as many slots as may be in
 * flight. It goes FREE -> queued -> (front thread: upload, launch) -> launched -> (back thread:
 * wait for the kernel, download) -> FREE. The front never waits for a kernel, so that kernels
 * follow one another in their queue without a gap; the back never uploads. What fails leaves the
 * line at once. Where the device copies by itself (KILN_CAP_ASYNC_COPY) the front does not wait for
 * uploads either: the launch is queued after them.
 *
 * executor.c has the line and its threads, executor_step.c what is done to one submission,
 * executor_ticket.c the tickets; launch.c has kn_launch_put. */
#ifndef KILN_CORE_EXECUTOR_H
#define KILN_CORE_EXECUTOR_H

#include "kiln/unstable/executor.h"

#include "core/build/program.h"
#include "core/launch/buffer_pool.h"
#include "sys/thread.h"

struct kiln_ticket {
    kiln_executor *executor;
    kiln_ticket *next; /* among the free ones */
    uint32_t references;
    bool done;
    kiln_status status;
    kiln_diag diag;
};

/* A submission, and room for everything about it that is used again by the next one. */
typedef struct kn_slot {
    struct kn_slot *next;
    kiln_ticket *ticket;
    kiln_program *program;
    kiln_launch launch;
    const char *entry;
    kiln_work_done_fn *done;
    void *user;
    char *bytes; /* the entry's name and the values */
    size_t capacity;
    void *event;                       /* the backend's, of the launch */
    void *uploads[KILN_WORK_ARGS_MAX]; /* the same of copies that the launch comes after */
    uint32_t upload_count;
    kiln_work_arg work[KILN_WORK_ARGS_MAX];
    kiln_arg args[KILN_WORK_ARGS_MAX];
    kiln_sys_arg resolved[KILN_WORK_ARGS_MAX];
    kn_pooled *pooled[KILN_WORK_ARGS_MAX]; /* NULL: a buffer of the caller's, or none */
    kiln_buffer views[KILN_WORK_ARGS_MAX]; /* pooled buffers, cut to the size asked for */
} kn_slot;

typedef struct kn_line {
    kn_slot *first, *last;
} kn_line;

struct kiln_executor {
    kiln_device *device;
    kiln_queue *up, *run, *down;
    bool async; /* copies are left to their queues, as launches are */
    kn_thread *front, *back;

    kn_mutex mutex;    /* everything below, and the tickets */
    kn_cond room;      /* for submitters: a slot came free */
    kn_cond front_has; /* for the front thread */
    kn_cond back_has;  /* for the back thread */
    kn_cond news;      /* for those who wait for tickets, or for all */
    kn_slot *slots;
    uint32_t slot_count;
    kn_line free, queued, launched;
    bool stopping, front_ended;
    uint32_t unfinished; /* slots not free, and callbacks still to return */
    uint32_t submitters; /* in a call now */
    uint32_t references; /* the owner's, and one a live ticket */
    kiln_ticket *free_tickets;
    kn_buffer_pool pool;
    kiln_executor_stats stats;
};

/* --- executor_ticket.c: under the mutex ------------------------------------------------------- */

/* A ticket with `references`, or NULL when out of memory. Each holds a reference to the executor.
 */
kiln_ticket *kn_ticket_take(kiln_executor *executor, uint32_t references);
/* Drops one reference; the ticket goes back to the free ones with the last. */
void kn_ticket_drop(kiln_ticket *ticket);
/* Drops one reference to the executor's memory. The mutex is held, and released here. */
void kn_executor_drop(kiln_executor *executor);

/* kiln_queue_launch without an allocation of kiln's own: `room` is for launch->arg_count resolved
 * arguments, *out_handle the backend's event. */
kiln_status kn_launch_put(kiln_queue *queue, kiln_program *program, const char *entry,
                          const kiln_launch *launch, kiln_sys_arg *room, void **out_handle,
                          kiln_diag *diag);

/* --- executor_step.c -------------------------------------------------------------------------- */

/* Copies what the caller gave. The slot is nobody else's. */
kiln_status kn_slot_fill(kn_slot *slot, const kiln_executor *executor, const kiln_work *work,
                         kiln_diag *diag);
/* Buffers, uploads, launch. */
kiln_status kn_slot_start(kn_slot *slot, kiln_executor *executor, kiln_diag *diag);
/* Waits for the launch, and downloads. */
kiln_status kn_slot_complete(kn_slot *slot, kiln_executor *executor, kiln_diag *diag);
/* Gives everything back that the submission held. */
void kn_slot_empty(kn_slot *slot, kiln_executor *executor);

#endif
