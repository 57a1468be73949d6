/* Queues: commands in a list, run in order by a thread of the queue's own. Every command was
 * checked, and holds references to what it needs, before it got here. */
#include <stdlib.h>
#include <string.h>

#include "apis/cpu/backend/device.h"
#include "base/diag.h"
#include "sys/clock.h"

typedef enum command_kind {
    COMMAND_WRITE,
    COMMAND_READ,
    COMMAND_COPY,
    COMMAND_FILL,
    COMMAND_LAUNCH,
    COMMAND_WAIT,
} command_kind;

typedef struct command {
    struct command *next;
    command_kind kind;
    cpu_buffer *buffer, *from;
    size_t offset, from_offset, size;
    const void *input;
    void *output;
    unsigned char pattern[16];
    size_t pattern_size;
    cpu_launch *launch;
    cpu_event *event;   /* may be NULL */
    cpu_event *awaited; /* of another queue */
} command;

typedef struct queue {
    cpu_instance *cpu;
    kn_mutex mutex;
    kn_cond work; /* for the thread */
    kn_cond idle; /* for those who wait for all */
    command *first, *last;
    uint64_t submitted, completed;
    bool ending;
    kn_thread *thread;
} queue;

static void fill_buffer(const command *c)
{
    unsigned char *to = c->buffer->data + c->offset;
    if (c->pattern_size == 1) {
        memset(to, c->pattern[0], c->size);
        return;
    }
    for (size_t at = 0; at < c->size; at += c->pattern_size) {
        memcpy(to + at, c->pattern, c->pattern_size);
    }
}

static void run_command(const queue *q, const command *c)
{
    switch (c->kind) {
    case COMMAND_WRITE:
        memcpy(c->buffer->data + c->offset, c->input, c->size);
        break;
    case COMMAND_READ:
        memcpy(c->output, c->buffer->data + c->offset, c->size);
        break;
    case COMMAND_COPY: /* one buffer may be both */
        memmove(c->buffer->data + c->offset, c->from->data + c->from_offset, c->size);
        break;
    case COMMAND_FILL:
        fill_buffer(c);
        break;
    case COMMAND_LAUNCH:
        kn_cpu_launch_run(q->cpu, c->launch);
        break;
    case COMMAND_WAIT: /* cannot fail: what was put in a queue was checked before */
        (void)!(kn_cpu_event_wait(NULL, c->awaited, NULL) == KILN_OK);
        break;
    }
}

static void command_destroy(command *c)
{
    if (c == NULL) {
        return;
    }
    kn_cpu_buffer_release(c->buffer);
    kn_cpu_buffer_release(c->from);
    kn_cpu_launch_destroy(c->launch);
    kn_cpu_event_release(c->event);
    kn_cpu_event_release(c->awaited);
    free(c);
}

static void queue_main(void *user)
{
    queue *q = (queue *)user;
    kn_mutex_lock(&q->mutex);
    for (;;) {
        while (q->first == NULL && !q->ending) {
            kn_cond_wait(&q->work, &q->mutex);
        }
        command *c = q->first;
        if (c == NULL) {
            break;
        }
        q->first = c->next;
        q->last = q->first != NULL ? q->last : NULL;
        kn_mutex_unlock(&q->mutex);

        const uint64_t begin = kn_clock_now();
        run_command(q, c);
        const uint64_t end = kn_clock_now();
        if (c->event != NULL) {
            kn_cpu_event_complete(c->event, begin, end);
        }
        command_destroy(c);

        kn_mutex_lock(&q->mutex);
        q->completed++;
        kn_cond_broadcast(&q->idle);
    }
    kn_mutex_unlock(&q->mutex);
}

kiln_status kn_cpu_queue_create(void *device, void **out_queue, kiln_diag *diag)
{
    queue *q = (queue *)calloc(1, sizeof(*q));
    if (q == NULL) {
        return kn_no_memory(diag, "cpu queue");
    }
    q->cpu = ((cpu_device *)device)->cpu;
    kn_mutex_init(&q->mutex);
    kn_cond_init(&q->work);
    kn_cond_init(&q->idle);
    kiln_status status = kn_thread_start(queue_main, q, &q->thread, diag);
    if (status != KILN_OK) {
        kn_cond_deinit(&q->idle);
        kn_cond_deinit(&q->work);
        kn_mutex_deinit(&q->mutex);
        free(q);
        return status;
    }
    *out_queue = q;
    return KILN_OK;
}

void kn_cpu_queue_destroy(void *device, void *queue_handle)
{
    queue *q = (queue *)queue_handle;
    (void)device;
    if (q == NULL) {
        return;
    }
    kn_mutex_lock(&q->mutex);
    q->ending = true; /* the thread empties the list first */
    kn_cond_signal(&q->work);
    kn_mutex_unlock(&q->mutex);
    kn_thread_join(q->thread);
    kn_cond_deinit(&q->idle);
    kn_cond_deinit(&q->work);
    kn_mutex_deinit(&q->mutex);
    free(q);
}

/* The number to wait for. */
static uint64_t append_command(queue *q, command *c)
{
    kn_mutex_lock(&q->mutex);
    if (q->last != NULL) {
        q->last->next = c;
    } else {
        q->first = c;
    }
    q->last = c;
    const uint64_t number = ++q->submitted;
    kn_cond_signal(&q->work);
    kn_mutex_unlock(&q->mutex);
    return number;
}

static void wait_for(queue *q, uint64_t number)
{
    kn_mutex_lock(&q->mutex);
    while (q->completed < number) {
        kn_cond_wait(&q->idle, &q->mutex);
    }
    kn_mutex_unlock(&q->mutex);
}

/* Hands a copy of `model` with its references over to the queue; on failure nothing was taken. */
static kiln_status submit_command(queue *q, const command *model, void **out_event, bool waits,
                                  kiln_diag *diag)
{
    command *c = (command *)malloc(sizeof(*c));
    if (c == NULL) {
        return kn_no_memory(diag, "cpu queue");
    }
    *c = *model;
    if (out_event != NULL) {
        c->event = kn_cpu_event_create();
        if (c->event == NULL) {
            free(c);
            return kn_no_memory(diag, "cpu queue");
        }
        *out_event = c->event;
    }
    if (c->buffer != NULL) {
        (void)kn_cpu_buffer_retain(c->buffer);
    }
    if (c->from != NULL) {
        (void)kn_cpu_buffer_retain(c->from);
    }
    const uint64_t number = append_command(q, c);
    if (waits) {
        wait_for(q, number);
    }
    return KILN_OK;
}

static kiln_status check_range(const cpu_buffer *buffer, size_t offset, size_t size,
                               const char *what, kiln_diag *diag)
{
    if (offset <= buffer->size && size <= buffer->size - offset) {
        return KILN_OK;
    }
    return kiln_diag_set(diag, KILN_E_INVALID, NULL, what,
                         "bytes %zu to %zu are not in a buffer of %zu", offset, offset + size,
                         buffer->size);
}

/* A copy to or from the host. In an idle queue it is done here and now. */
static kiln_status transfer_bytes(queue *q, const command *model, const char *what,
                                  void **out_event, kiln_diag *diag)
{
    kiln_status status = check_range(model->buffer, model->offset, model->size, what, diag);
    if (status != KILN_OK) {
        return status;
    }
    kn_mutex_lock(&q->mutex);
    const bool here = out_event == NULL && q->completed == q->submitted;
    if (here) {
        run_command(q, model);
    }
    kn_mutex_unlock(&q->mutex);
    return here ? KILN_OK : submit_command(q, model, out_event, out_event == NULL, diag);
}

kiln_status kn_cpu_queue_write(void *queue_handle, void *buffer, size_t offset, const void *data,
                               size_t size, void **out_event, kiln_diag *diag)
{
    const command model = {.kind = COMMAND_WRITE,
                           .buffer = (cpu_buffer *)buffer,
                           .offset = offset,
                           .size = size,
                           .input = data};
    return transfer_bytes((queue *)queue_handle, &model, "writing a buffer", out_event, diag);
}

kiln_status kn_cpu_queue_read(void *queue_handle, void *buffer, size_t offset, void *data,
                              size_t size, void **out_event, kiln_diag *diag)
{
    const command model = {.kind = COMMAND_READ,
                           .buffer = (cpu_buffer *)buffer,
                           .offset = offset,
                           .size = size,
                           .output = data};
    return transfer_bytes((queue *)queue_handle, &model, "reading a buffer", out_event, diag);
}

kiln_status kn_cpu_queue_fill(void *queue_handle, void *buffer, size_t offset, const void *pattern,
                              size_t pattern_size, size_t size, kiln_diag *diag)
{
    command model = {.kind = COMMAND_FILL,
                     .buffer = (cpu_buffer *)buffer,
                     .offset = offset,
                     .size = size,
                     .pattern_size = pattern_size};
    if (pattern_size == 0 || pattern_size > sizeof(model.pattern) || size % pattern_size != 0) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, "filling a buffer",
                             "a pattern of %zu bytes does not fill %zu bytes", pattern_size, size);
    }
    memcpy(model.pattern, pattern, pattern_size);
    kiln_status status = check_range(model.buffer, offset, size, "filling a buffer", diag);
    return status == KILN_OK ? submit_command((queue *)queue_handle, &model, NULL, false, diag)
                             : status;
}

kiln_status kn_cpu_queue_copy(void *queue_handle, void *from, size_t from_offset, void *to,
                              size_t to_offset, size_t size, kiln_diag *diag)
{
    const command model = {.kind = COMMAND_COPY,
                           .buffer = (cpu_buffer *)to,
                           .from = (cpu_buffer *)from,
                           .offset = to_offset,
                           .from_offset = from_offset,
                           .size = size};
    kiln_status status = check_range(model.from, from_offset, size, "copying a buffer", diag);
    if (status == KILN_OK) {
        status = check_range(model.buffer, to_offset, size, "copying a buffer", diag);
    }
    return status == KILN_OK ? submit_command((queue *)queue_handle, &model, NULL, false, diag)
                             : status;
}

kiln_status kn_cpu_queue_launch(void *queue_handle, const kiln_sys_launch *launch, void **out_event,
                                kiln_diag *diag)
{
    queue *q = (queue *)queue_handle;
    command model = {.kind = COMMAND_LAUNCH};
    kiln_status status = kn_cpu_launch_create(q->cpu, launch, &model.launch, diag);
    if (status != KILN_OK) {
        return status;
    }
    status = submit_command(q, &model, out_event, false, diag);
    if (status != KILN_OK) {
        kn_cpu_launch_destroy(model.launch);
    }
    return status;
}

kiln_status kn_cpu_queue_wait(void *queue_handle, void *event, kiln_diag *diag)
{
    const command model = {.kind = COMMAND_WAIT,
                           .awaited = kn_cpu_event_retain((cpu_event *)event)};
    kiln_status status = submit_command((queue *)queue_handle, &model, NULL, false, diag);
    if (status != KILN_OK) {
        kn_cpu_event_release(model.awaited);
    }
    return status;
}

kiln_status kn_cpu_queue_finish(void *queue_handle, kiln_diag *diag)
{
    queue *q = (queue *)queue_handle;
    (void)diag; /* what was put in was checked, and cannot fail */
    kn_mutex_lock(&q->mutex);
    const uint64_t number = q->submitted;
    kn_mutex_unlock(&q->mutex);
    wait_for(q, number);
    return KILN_OK;
}
