/* The executor: a stream of submissions, each with data of its own. */
#include <stdlib.h>
#include <string.h>

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
