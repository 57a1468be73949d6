/* One thread and its queue of calls, for things that must happen on one and the same thread (a
 * driver that is bound to it) or off the caller's (a capture). It knows neither.
 *
 *     kn_worker_create(&worker, diag);
 *     kn_worker_call(worker, run, user);    runs there, returns when it is done
 *     kn_worker_post(worker, &task);        runs there some time; the task is the caller's memory
 *     kn_worker_destroy(worker);            after everything that was posted has run */
#ifndef KILN_EXEC_WORKER_H
#define KILN_EXEC_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "kiln/status.h"

typedef struct kn_worker kn_worker;

/* A call in the queue. The caller sets `run` and `user`; the memory must live until `run` starts,
 * and may be released by it. */
typedef struct kn_worker_task {
    void (*run)(void *user);
    void *user;
    struct kn_worker_task *next;
} kn_worker_task;

kiln_status kn_worker_create(kn_worker **out_worker, kiln_diag *diag);
void kn_worker_destroy(kn_worker *worker);

/* In order with everything else. A call made on the worker's own thread runs at once. */
void kn_worker_call(kn_worker *worker, void (*run)(void *user), void *user);
void kn_worker_post(kn_worker *worker, kn_worker_task *task);

/* Waits until the queue is empty and nothing runs, or until `deadline_ns`; false then. */
bool kn_worker_drain(kn_worker *worker, uint64_t deadline_ns);

#endif
