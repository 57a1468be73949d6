/* A thread that runs calls one after the other. */
#include "exec/worker.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/diag.h"
#include "sys/clock.h"
#include "sys/thread.h"

struct kn_worker {
    kn_mutex mutex;
    kn_cond work;  /* something was queued, or stop */
    kn_cond ended; /* a task finished */
    kn_worker_task *first, *last;
    bool running;
    bool stop;
    kn_thread *thread;
    atomic_uintptr_t self; /* kn_thread_self of the thread, once it runs */
};

static void worker_main(void *user)
{
    kn_worker *worker = (kn_worker *)user;
    atomic_store(&worker->self, kn_thread_self());
    kn_mutex_lock(&worker->mutex);
    for (;;) {
        while (worker->first == NULL && !worker->stop) {
            kn_cond_wait(&worker->work, &worker->mutex);
        }
        kn_worker_task *task = worker->first;
        if (task == NULL) {
            break;
        }
        worker->first = task->next;
        if (worker->first == NULL) {
            worker->last = NULL;
        }
        worker->running = true;
        kn_mutex_unlock(&worker->mutex);
        task->run(task->user);
        kn_mutex_lock(&worker->mutex);
        worker->running = false;
        kn_cond_broadcast(&worker->ended);
    }
    kn_mutex_unlock(&worker->mutex);
}

kiln_status kn_worker_create(kn_worker **out_worker, kiln_diag *diag)
{
    *out_worker = NULL;
    kn_worker *worker = (kn_worker *)calloc(1, sizeof(*worker));
    if (worker == NULL) {
        return kn_no_memory(diag, "starting a worker thread");
    }
    kn_mutex_init(&worker->mutex);
    kn_cond_init(&worker->work);
    kn_cond_init(&worker->ended);
    atomic_init(&worker->self, 0);
    kiln_status status = kn_thread_start(worker_main, worker, &worker->thread, diag);
    if (status != KILN_OK) {
        kn_cond_deinit(&worker->ended);
        kn_cond_deinit(&worker->work);
        kn_mutex_deinit(&worker->mutex);
        free(worker);
        return status;
    }
    *out_worker = worker;
    return KILN_OK;
}

void kn_worker_destroy(kn_worker *worker)
{
    if (worker == NULL) {
        return;
    }
    kn_mutex_lock(&worker->mutex);
    worker->stop = true;
    kn_cond_broadcast(&worker->work);
    kn_mutex_unlock(&worker->mutex);
    kn_thread_join(worker->thread);
    kn_cond_deinit(&worker->ended);
    kn_cond_deinit(&worker->work);
    kn_mutex_deinit(&worker->mutex);
    free(worker);
}

void kn_worker_post(kn_worker *worker, kn_worker_task *task)
{
    task->next = NULL;
    kn_mutex_lock(&worker->mutex);
    if (worker->last != NULL) {
        worker->last->next = task;
    } else {
        worker->first = task;
    }
    worker->last = task;
    kn_cond_signal(&worker->work);
    kn_mutex_unlock(&worker->mutex);
}

/* A call with a waiter. */
typedef struct waited_call {
    kn_worker *worker;
    void (*run)(void *user);
    void *user;
    bool done; /* under the worker's mutex */
} waited_call;

static void waited_run(void *user)
{
    waited_call *call = (waited_call *)user;
    kn_worker *worker = call->worker;
    call->run(call->user);
    /* The last touch of `call`: the waiter returns as soon as it sees done. worker_main wakes it.
     */
    kn_mutex_lock(&worker->mutex);
    call->done = true;
    kn_mutex_unlock(&worker->mutex);
}

void kn_worker_call(kn_worker *worker, void (*run)(void *user), void *user)
{
    if (atomic_load(&worker->self) == kn_thread_self()) {
        run(user); /* waiting for itself would not end */
        return;
    }
    waited_call call = {worker, run, user, false};
    kn_worker_task task = {waited_run, &call, NULL};
    kn_worker_post(worker, &task);
    kn_mutex_lock(&worker->mutex);
    while (!call.done) {
        kn_cond_wait(&worker->ended, &worker->mutex);
    }
    kn_mutex_unlock(&worker->mutex);
}

bool kn_worker_drain(kn_worker *worker, uint64_t deadline_ns)
{
    bool in_time = true;
    kn_mutex_lock(&worker->mutex);
    while ((worker->first != NULL || worker->running) && in_time) {
        in_time = kn_cond_wait_until(&worker->ended, &worker->mutex, deadline_ns);
    }
    bool empty = worker->first == NULL && !worker->running;
    kn_mutex_unlock(&worker->mutex);
    return empty;
}
