/* The executor: a stream of submissions, each with data of its own. */
#include <stdlib.h>
#include <string.h>

#include <kiln/unstable/executor.h>

#include "conformance/suite.h"

enum { SUBMISSIONS = 48, MOST = 4096 };

/* One saxpy; sizes vary so that buffers of the pool are larger than what is asked for. */
typedef struct piece {
    float a, x[MOST], y[MOST];
    size_t count;
    kiln_ticket *ticket;
} piece;

static size_t count_of(size_t i)
{
    static const size_t counts[] = {64, MOST, 256, 1024, 64, 2048};
    return counts[i % (sizeof(counts) / sizeof(counts[0]))];
}

static void submit(suite *s, kiln_executor *executor, piece *p, size_t i)
{
    p->a = (float)(i + 1);
    p->count = count_of(i);
    for (size_t j = 0; j < p->count; j++) {
        p->x[j] = (float)(j % 31);
        p->y[j] = (float)i;
    }
    const size_t bytes = p->count * sizeof(float);
    kiln_work_arg args[] = {
        {.kind = KILN_ARG_VALUE, .value = &p->a, .size = sizeof(p->a)},
        {.kind = KILN_ARG_BUFFER, .size = bytes, .input = p->x},
        {.kind = KILN_ARG_BUFFER, .size = bytes, .input = p->y, .output = p->y}};
    kiln_work work = {.struct_size = sizeof(work),
                      .program = suite_program(s, "saxpy"),
                      .entry = suite_entry(s->device, "saxpy"),
                      .dims = 1,
                      .global = {p->count},
                      .local = {64},
                      .args = args,
                      .arg_count = 3};
    OK(kiln_executor_submit(executor, &work, &p->ticket, &diag));
}

void a_stream_of_submissions_is_right(suite *s)
{
    kiln_executor *executor = NULL;
    kiln_executor_stats stats = {.struct_size = sizeof(stats)};
    piece *pieces = calloc(SUBMISSIONS, sizeof(*pieces));
    assert_non_null(pieces);
    OK(kiln_executor_create(s->device, NULL, &executor, &diag));
    for (size_t i = 0; i < SUBMISSIONS; i++) {
        submit(s, executor, &pieces[i], i);
    }
    for (size_t i = 0; i < SUBMISSIONS; i++) {
        piece *p = &pieces[i];
        OK(kiln_ticket_wait(p->ticket, &diag));
        kiln_ticket_release(p->ticket);
        for (size_t j = 0; j < p->count; j++) {
            assert_true(p->y[j] == p->a * (float)(j % 31) + (float)i);
        }
    }
    OK(kiln_executor_get_stats(executor, &stats, &diag));
    assert_int_equal(stats.completed, SUBMISSIONS);
    assert_int_equal(stats.failed, 0);
    assert_true(stats.pool_reuses > stats.pool_creates);
    kiln_executor_destroy(executor);
    free(pieces);
}

/* The second queue reads what the first one's kernel writes, without the host between them. */
void a_queue_waits_for_another(suite *s)
{
    enum { COUNT = 1024, TIMES = 30 };
    static const float zero = 0;
    static float ones[COUNT], back[COUNT];
    float one = 1.0F;
    kiln_queue *other = NULL;
    kiln_buffer *x = NULL;
    kiln_buffer *y = NULL;
    for (size_t i = 0; i < COUNT; i++) {
        ones[i] = 1.0F;
    }
    OK(kiln_queue_create(s->device, &other, &diag));
    OK(kiln_buffer_create(s->device, sizeof(ones), &x, &diag));
    OK(kiln_buffer_create(s->device, sizeof(ones), &y, &diag));
    OK(kiln_queue_write(s->queue, x, 0, ones, sizeof(ones), &diag));
    OK(kiln_queue_fill(s->queue, y, 0, &zero, sizeof(zero), sizeof(ones), &diag));
    OK(kiln_queue_finish(s->queue, &diag));
    const kiln_arg args[] = {{.kind = KILN_ARG_VALUE, .value = &one, .size = sizeof(one)},
                             {.kind = KILN_ARG_BUFFER, .buffer = x},
                             {.kind = KILN_ARG_BUFFER, .buffer = y}};
    const kiln_launch launch = {
        .struct_size = sizeof(launch), .dims = 1, .global = {COUNT}, .args = args, .arg_count = 3};
    kiln_queue *queues[] = {s->queue, other};
    for (int i = 0; i < TIMES; i++) {
        kiln_event *event = NULL;
        OK(kiln_queue_launch(queues[i % 2], suite_program(s, "saxpy"),
                             suite_entry(s->device, "saxpy"), &launch, &event, &diag));
        OK(kiln_queue_wait_event(queues[(i + 1) % 2], event, &diag));
        kiln_event_release(event);
    }
    OK(kiln_queue_read(queues[TIMES % 2], y, 0, back, sizeof(back), &diag));
    for (size_t i = 0; i < COUNT; i++) {
        assert_true(back[i] == (float)TIMES);
    }
    kiln_queue_destroy(other);
    kiln_buffer_destroy(x);
    kiln_buffer_destroy(y);
}
