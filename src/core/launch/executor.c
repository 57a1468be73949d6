/* The executor's line: who may submit, which thread takes what, how it begins and ends. */
#include "core/launch/executor.h"

#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "sized/sized.h"

#define IN_FLIGHT_DEFAULT 3u

/* --- lines of slots: under the mutex ---------------------------------------------------------- */

static void push_slot(kn_line *line, kn_slot *slot)
{
    slot->next = NULL;
    if (line->last != NULL) {
        line->last->next = slot;
    } else {
        line->first = slot;
    }
    line->last = slot;
}

static kn_slot *pop_slot(kn_line *line)
{
    kn_slot *slot = line->first;
    if (slot != NULL) {
        line->first = slot->next;
        line->last = line->first != NULL ? line->last : NULL;
        slot->next = NULL;
    }
    return slot;
}

/* --- the threads ------------------------------------------------------------------------------ */

/* Ends a submission: its things go back, its slot comes free, its caller is notified. */
static void finish_slot(kiln_executor *executor, kn_slot *slot, kiln_status status)
{
    kiln_ticket *ticket = slot->ticket;
    kiln_work_done_fn *done = slot->done;
    void *user = slot->user;
    kn_slot_empty(slot, executor);

    kn_mutex_lock(&executor->mutex);
    push_slot(&executor->free, slot);
    executor->stats.in_flight--;
    executor->stats.completed += status == KILN_OK;
    executor->stats.cancelled += status == KILN_E_CANCELLED;
    executor->stats.failed += status != KILN_OK && status != KILN_E_CANCELLED;
    kn_cond_signal(&executor->room);
    kn_mutex_unlock(&executor->mutex);

    if (done != NULL) {
        done(user, status, &ticket->diag);
    }

    kn_mutex_lock(&executor->mutex);
    ticket->status = status;
    ticket->done = true;
    kn_ticket_drop(ticket);
    executor->unfinished--;
    kn_cond_broadcast(&executor->news);
    kn_mutex_unlock(&executor->mutex);
}

static void front_main(void *user)
{
    kiln_executor *executor = (kiln_executor *)user;
    kn_trace_thread(executor->device->runtime->trace, "executor: uploads and launches");
    kn_mutex_lock(&executor->mutex);
    for (;;) {
        while (executor->queued.first == NULL && !executor->stopping) {
            kn_cond_wait(&executor->front_has, &executor->mutex);
        }
        kn_slot *slot = pop_slot(&executor->queued);
        const bool stopping = executor->stopping;
        if (slot == NULL) {
            break;
        }
        kn_mutex_unlock(&executor->mutex);

        kiln_diag *diag = &slot->ticket->diag;
        kiln_status status = stopping ? kiln_diag_set(diag, KILN_E_CANCELLED, NULL, slot->entry,
                                                      "the executor was destroyed first")
                                      : kn_slot_start(slot, executor, diag);
        if (status != KILN_OK) {
            finish_slot(executor, slot, status);
        }

        kn_mutex_lock(&executor->mutex);
        if (status == KILN_OK) {
            push_slot(&executor->launched, slot);
            kn_cond_signal(&executor->back_has);
        }
    }
    executor->front_ended = true;
    kn_cond_signal(&executor->back_has);
    kn_mutex_unlock(&executor->mutex);
}

static void back_main(void *user)
{
    kiln_executor *executor = (kiln_executor *)user;
    kn_trace_thread(executor->device->runtime->trace, "executor: downloads");
    kn_mutex_lock(&executor->mutex);
    for (;;) {
        while (executor->launched.first == NULL && !executor->front_ended) {
            kn_cond_wait(&executor->back_has, &executor->mutex);
        }
        kn_slot *slot = pop_slot(&executor->launched);
        if (slot == NULL) {
            break;
        }
        kn_mutex_unlock(&executor->mutex);
        finish_slot(executor, slot, kn_slot_complete(slot, executor, &slot->ticket->diag));
        kn_mutex_lock(&executor->mutex);
    }
    kn_mutex_unlock(&executor->mutex);
}

/* --- submitting ------------------------------------------------------------------------------- */

/* Under the mutex: waits for a free slot. */
static kiln_status take_slot(kiln_executor *executor, bool wait, kn_slot **out_slot)
{
    executor->stats.waited += wait && executor->free.first == NULL && !executor->stopping;
    while (wait && executor->free.first == NULL && !executor->stopping) {
        kn_cond_wait(&executor->room, &executor->mutex);
    }
    if (executor->stopping) {
        return KILN_E_CANCELLED;
    }
    *out_slot = pop_slot(&executor->free);
    executor->stats.refused += *out_slot == NULL;
    return *out_slot != NULL ? KILN_OK : KILN_E_BUSY;
}

/* Under the mutex, with a filled slot. */
static void enter_slot(kiln_executor *executor, kn_slot *slot)
{
    kiln_executor_stats *stats = &executor->stats;
    stats->submitted++;
    stats->in_flight++;
    stats->in_flight_high =
        stats->in_flight > stats->in_flight_high ? stats->in_flight : stats->in_flight_high;
    executor->unfinished++;
    push_slot(&executor->queued, slot);
    kn_cond_signal(&executor->front_has);
}

static kiln_status submit_work(kiln_executor *executor, const kiln_work *work, bool wait,
                               kiln_ticket **out_ticket, kiln_diag *diag)
{
    kn_slot *slot = NULL;
    if (out_ticket != NULL) {
        *out_ticket = NULL;
    }
    kn_mutex_lock(&executor->mutex);
    executor->submitters++;
    kiln_status status = take_slot(executor, wait, &slot);
    if (status == KILN_OK) {
        slot->ticket = kn_ticket_take(executor, out_ticket != NULL ? 2 : 1);
        /* Copying under the mutex: the order of submission is the order of the calls. */
        status = slot->ticket != NULL ? kn_slot_fill(slot, executor, work, diag)
                                      : kn_no_memory(diag, "a submission");
        if (status == KILN_OK) {
            enter_slot(executor, slot);
            if (out_ticket != NULL) {
                *out_ticket = slot->ticket;
            }
        } else {
            if (slot->ticket != NULL) {
                slot->ticket->references = 1;
                kn_ticket_drop(slot->ticket);
            }
            push_slot(&executor->free, slot);
            kn_cond_signal(&executor->room);
        }
    } else if (status == KILN_E_CANCELLED) {
        (void)kiln_diag_set(diag, status, NULL, "a submission", "the executor is being destroyed");
    }
    executor->submitters--;
    if (executor->stopping) {
        kn_cond_broadcast(&executor->news);
    }
    kn_mutex_unlock(&executor->mutex);
    return status;
}

kiln_status kiln_executor_submit(kiln_executor *executor, const kiln_work *work,
                                 kiln_ticket **out_ticket, kiln_diag *diag)
{
    return submit_work(executor, work, true, out_ticket, diag);
}

kiln_status kiln_executor_try_submit(kiln_executor *executor, const kiln_work *work,
                                     kiln_ticket **out_ticket, kiln_diag *diag)
{
    return submit_work(executor, work, false, out_ticket, diag);
}

void kiln_executor_drain(kiln_executor *executor)
{
    kn_mutex_lock(&executor->mutex);
    while (executor->unfinished > 0) {
        kn_cond_wait(&executor->news, &executor->mutex);
    }
    kn_mutex_unlock(&executor->mutex);
}

kiln_status kiln_executor_get_stats(kiln_executor *executor, kiln_executor_stats *out_stats,
                                    kiln_diag *diag)
{
    kn_mutex_lock(&executor->mutex);
    const kn_buffer_pool *pool = &executor->pool;
    kiln_executor_stats stats = executor->stats;
    stats.pool_buffers = pool->count;
    stats.pool_creates = pool->creates;
    stats.pool_reuses = pool->reuses;
    stats.pool_bytes = pool->bytes;
    stats.pool_bytes_high = pool->bytes_high;
    stats.used_bytes = pool->used;
    stats.used_bytes_high = pool->used_high;
    kn_mutex_unlock(&executor->mutex);
    return kn_sized_give(KN_SIZED(kiln_executor_stats), &stats, out_stats, diag);
}

/* --- life ------------------------------------------------------------------------------------- */

static kiln_status check_options(const kiln_executor_options *options, kiln_diag *diag)
{
    if (options->in_flight > KILN_IN_FLIGHT_MAX) {
        return kiln_diag_set(diag, KILN_E_INVALID, "use 2 to 4", "creating an executor",
                             "%u submissions in flight; at most %u", (unsigned)options->in_flight,
                             (unsigned)KILN_IN_FLIGHT_MAX);
    }
    return KILN_OK;
}

static kiln_status start_executor(kiln_executor *executor, kiln_diag *diag)
{
    kiln_device *device = executor->device;
    kiln_queue **const queues[] = {&executor->up, &executor->run, &executor->down};
    kiln_status status = KILN_OK;
    for (size_t i = 0; status == KILN_OK && i < 3; i++) {
        status = kiln_queue_create(device, queues[i], diag);
    }
    if (status != KILN_OK) {
        return status;
    }
    const kn_instance *in = &device->driver->in;
    executor->async =
        kn_instance_can(in, KILN_CAP_ASYNC_COPY) && kn_instance_can(in, KILN_CAP_QUEUE_WAIT);
    status = kn_thread_start(front_main, executor, &executor->front, diag);
    return status == KILN_OK ? kn_thread_start(back_main, executor, &executor->back, diag) : status;
}

kiln_status kiln_executor_create(kiln_device *device, const kiln_executor_options *options,
                                 kiln_executor **out_executor, kiln_diag *diag)
{
    static const kiln_executor_options none = {.struct_size = sizeof(kiln_executor_options)};
    kiln_executor_options room;
    *out_executor = NULL;
    options = kn_sized_view(KN_SIZED(kiln_executor_options), options != NULL ? options : &none,
                            &room, diag);
    kiln_status status = options != NULL ? check_options(options, diag) : KILN_E_INVALID;
    if (status != KILN_OK) {
        return status;
    }
    const uint32_t count = options->in_flight != 0 ? options->in_flight : IN_FLIGHT_DEFAULT;
    kiln_executor *executor = (kiln_executor *)calloc(1, sizeof(*executor));
    kn_slot *slots = (kn_slot *)calloc(count, sizeof(*slots));
    if (executor == NULL || slots == NULL) {
        free(slots);
        free(executor);
        return kn_no_memory(diag, "creating an executor");
    }
    executor->device = device;
    executor->slots = slots;
    executor->slot_count = count;
    executor->references = 1;
    executor->pool.idle_limit = options->idle_bytes;
    kn_mutex_init(&executor->mutex);
    kn_cond_init(&executor->room);
    kn_cond_init(&executor->front_has);
    kn_cond_init(&executor->back_has);
    kn_cond_init(&executor->news);
    for (uint32_t i = 0; i < count; i++) {
        push_slot(&executor->free, &slots[i]);
    }
    status = start_executor(executor, diag);
    if (status != KILN_OK) {
        kiln_executor_destroy(executor);
        return status;
    }
    *out_executor = executor;
    return KILN_OK;
}

void kiln_executor_destroy(kiln_executor *executor)
{
    if (executor == NULL) {
        return;
    }
    kn_mutex_lock(&executor->mutex);
    executor->stopping = true;
    kn_cond_broadcast(&executor->room);
    kn_cond_broadcast(&executor->front_has);
    while (executor->submitters > 0) {
        kn_cond_wait(&executor->news, &executor->mutex);
    }
    kn_mutex_unlock(&executor->mutex);
    if (executor->front != NULL) {
        kn_thread_join(executor->front);
    }
    if (executor->back != NULL) {
        kn_thread_join(executor->back);
    }
    kiln_queue_destroy(executor->down);
    kiln_queue_destroy(executor->run);
    kiln_queue_destroy(executor->up);
    kn_pooled_destroy(kn_buffer_pool_trim(&executor->pool, 0));
    for (uint32_t i = 0; i < executor->slot_count; i++) {
        free(executor->slots[i].bytes);
    }
    free(executor->slots);
    executor->slots = NULL;
    kn_mutex_lock(&executor->mutex);
    kn_executor_drop(executor);
}
