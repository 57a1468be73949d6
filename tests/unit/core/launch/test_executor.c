/* The executor on the fake backend: results, tickets, back-pressure, whose failure is whose, the
 * pool of buffers, and the end with work in flight. Latches instead of times. */
#include "unit/core/rig.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <kiln/unstable/executor.h>

#include "core/launch/executor.h"
#include "core/runtime/runtime.h"
#include "exec/worker.h"
#include "support/failalloc.h"
#include "sys/clock.h"
#include "sys/thread.h"

#define ITEMS 64

/* One saxpy with its data. */
typedef struct piece {
    float a;
    float x[ITEMS], y[ITEMS];
    kiln_work_arg args[3];
    kiln_work work;
    kiln_ticket *ticket;
} piece;

static void piece_init(piece *p, kiln_program *program, float a)
{
    *p = (piece){.a = a};
    for (int i = 0; i < ITEMS; i++) {
        p->x[i] = (float)i;
        p->y[i] = 1;
    }
    p->args[0] = (kiln_work_arg){.kind = KILN_ARG_VALUE, .value = &p->a, .size = sizeof(float)};
    p->args[1] = (kiln_work_arg){.kind = KILN_ARG_BUFFER, .size = sizeof(p->x), .input = p->x};
    p->args[2] = (kiln_work_arg){
        .kind = KILN_ARG_BUFFER, .size = sizeof(p->y), .input = p->y, .output = p->y};
    p->work = (kiln_work){.struct_size = sizeof(kiln_work),
                          .program = program,
                          .entry = "saxpy",
                          .dims = 1,
                          .global = {ITEMS},
                          .local = {1},
                          .args = p->args,
                          .arg_count = 3};
}

static void piece_check(const piece *p)
{
    for (int i = 0; i < ITEMS; i++) {
        assert_true(p->y[i] == p->a * (float)i + 1);
    }
}

static kiln_executor *open_executor(rig *r, uint32_t in_flight)
{
    kiln_executor *executor = NULL;
    kiln_executor_options options = {.struct_size = sizeof(options), .in_flight = in_flight};
    RIG_OK(kiln_executor_create(r->device, &options, &executor, &diag));
    return executor;
}

static kiln_program *open_all(rig *r, const char *faults, uint32_t in_flight,
                              kiln_executor **out_executor)
{
    if (faults != NULL) {
        (void)setenv("KILN_FAKE_FAULTS", faults, 1);
    }
    rig_open(r, NULL);
    kiln_source source = rig_source(rig_saxpy);
    kiln_program *program = rig_build(r, &source);
    *out_executor = open_executor(r, in_flight);
    return program;
}

static kiln_executor_stats stats_of(kiln_executor *executor)
{
    kiln_executor_stats stats = {.struct_size = sizeof(stats)};
    RIG_OK(kiln_executor_get_stats(executor, &stats, &diag));
    return stats;
}

/* --- a latch that a callback waits at --------------------------------------------------------- */

typedef struct latch {
    kn_mutex mutex;
    kn_cond cond;
    bool reached, open;
    kiln_status status;
} latch;

static void latch_init(latch *l)
{
    *l = (latch){.reached = false};
    kn_mutex_init(&l->mutex);
    kn_cond_init(&l->cond);
}

static void latch_deinit(latch *l)
{
    kn_cond_deinit(&l->cond);
    kn_mutex_deinit(&l->mutex);
}

static void latch_stop_here(void *user, kiln_status status, const kiln_diag *diag)
{
    latch *l = user;
    (void)diag;
    kn_mutex_lock(&l->mutex);
    l->reached = true;
    l->status = status;
    kn_cond_broadcast(&l->cond);
    while (!l->open) {
        kn_cond_wait(&l->cond, &l->mutex);
    }
    kn_mutex_unlock(&l->mutex);
}

static void latch_await(latch *l)
{
    kn_mutex_lock(&l->mutex);
    while (!l->reached) {
        kn_cond_wait(&l->cond, &l->mutex);
    }
    kn_mutex_unlock(&l->mutex);
}

static void latch_open(latch *l)
{
    kn_mutex_lock(&l->mutex);
    l->open = true;
    kn_cond_broadcast(&l->cond);
    kn_mutex_unlock(&l->mutex);
}

/* --- tests ------------------------------------------------------------------------------------ */

static void a_stream_gives_every_result(void **state)
{
    enum { COUNT = 40 };
    rig *r = *state;
    kiln_executor *executor = NULL;
    kiln_program *program = open_all(r, NULL, 0, &executor);
    piece *pieces = calloc(COUNT, sizeof(*pieces));
    assert_non_null(pieces);
    for (int i = 0; i < COUNT; i++) {
        piece_init(&pieces[i], program, (float)i);
        RIG_OK(kiln_executor_submit(executor, &pieces[i].work, &pieces[i].ticket, &diag));
    }
    for (int i = 0; i < COUNT; i++) {
        RIG_OK(kiln_ticket_wait(pieces[i].ticket, &diag));
        assert_true(kiln_ticket_done(pieces[i].ticket));
        piece_check(&pieces[i]);
        kiln_ticket_release(pieces[i].ticket);
    }
    kiln_executor_stats stats = stats_of(executor);
    assert_int_equal(stats.submitted, COUNT);
    assert_int_equal(stats.completed, COUNT);
    assert_int_equal(stats.failed + stats.cancelled + stats.refused, 0);
    assert_true(stats.in_flight_high >= 1 && stats.in_flight_high <= 3);
    assert_true(stats.pool_creates <= 3 * 2);
    assert_int_equal(stats.pool_creates + stats.pool_reuses, COUNT * 2);
    assert_int_equal(stats.used_bytes, 0);
    assert_true(stats.used_bytes_high >= 512 && stats.used_bytes_high <= 3 * 512);
    assert_int_equal(stats.pool_bytes, stats.pool_bytes_high);
    kiln_executor_destroy(executor);
    kiln_program_release(program);
    free(pieces);
}

static void a_failure_is_its_tickets_alone(void **state)
{
    enum { COUNT = 12 };
    rig *r = *state;
    kiln_executor *executor = NULL;
    /* Uploads: two a piece. The 5th write is piece 2's first; then launches count without it. */
    kiln_program *program = open_all(r, "write=fail@5,launch=lost@4,read=nomem@6", 3, &executor);
    piece pieces[COUNT];
    int failed = 0;
    for (int i = 0; i < COUNT; i++) {
        piece_init(&pieces[i], program, (float)i);
        RIG_OK(kiln_executor_submit(executor, &pieces[i].work, &pieces[i].ticket, &diag));
    }
    for (int i = 0; i < COUNT; i++) {
        kiln_diag diag = KILN_DIAG_INIT;
        kiln_status status = kiln_ticket_wait(pieces[i].ticket, &diag);
        kiln_status expected = i == 2   ? KILN_E_INTERNAL
                               : i == 4 ? KILN_E_DEVICE_LOST
                               : i == 7 ? KILN_E_NOMEM
                                        : KILN_OK;
        rig_expect(status, expected, &diag, "kiln_ticket_wait", __FILE__, __LINE__);
        if (expected != KILN_OK) {
            assert_non_null(strstr(diag.why, "scripted fault"));
            failed++;
        } else {
            piece_check(&pieces[i]);
        }
        kiln_diag_clear(&diag);
        kiln_ticket_release(pieces[i].ticket);
    }
    assert_int_equal(failed, 3);
    kiln_executor_stats stats = stats_of(executor);
    assert_int_equal(stats.failed, 3);
    assert_int_equal(stats.completed, COUNT - 3);
    assert_int_equal(stats.used_bytes, 0);
    kiln_executor_destroy(executor);
    kiln_program_release(program);
}

static void what_the_launch_refuses_is_the_tickets(void **state)
{
    rig *r = *state;
    kiln_executor *executor = NULL;
    kiln_program *program = open_all(r, NULL, 3, &executor);
    piece p;
    piece_init(&p, program, 1);
    p.work.entry = "nothing";
    RIG_OK(kiln_executor_submit(executor, &p.work, &p.ticket, &diag));
    kiln_diag diag = KILN_DIAG_INIT;
    assert_int_equal(kiln_ticket_wait(p.ticket, &diag), KILN_E_INVALID);
    assert_non_null(strstr(diag.why, "saxpy"));
    kiln_ticket_release(p.ticket);
    kiln_diag_clear(&diag);

    p.work.entry = "saxpy";
    p.work.program = NULL;
    assert_int_equal(kiln_executor_submit(executor, &p.work, &p.ticket, &diag), KILN_E_INVALID);
    assert_null(p.ticket);
    p.work.program = program;
    p.work.arg_count = KILN_WORK_ARGS_MAX + 1;
    assert_int_equal(kiln_executor_submit(executor, &p.work, NULL, &diag), KILN_E_INVALID);
    p.work.arg_count = 3;
    p.work.struct_size = 4;
    assert_int_equal(kiln_executor_submit(executor, &p.work, NULL, &diag), KILN_E_INVALID);
    kiln_executor_options options = {.struct_size = sizeof(options), .in_flight = 1000};
    kiln_executor *other = NULL;
    assert_int_equal(kiln_executor_create(r->device, &options, &other, &diag), KILN_E_INVALID);
    kiln_diag_clear(&diag);
    assert_int_equal(stats_of(executor).in_flight, 0);
    kiln_executor_destroy(executor);
    kiln_program_release(program);
}

static void submit_piece(kiln_executor *executor, piece *p)
{
    RIG_OK(kiln_executor_submit(executor, &p->work, &p->ticket, &diag));
}

/* The back thread stands in a callback: two more fill the executor, the third finds no room. */
static void a_full_executor_is_busy(void **state)
{
    rig *r = *state;
    kiln_executor *executor = NULL;
    kiln_program *program = open_all(r, NULL, 2, &executor);
    piece p[4];
    latch l;
    latch_init(&l);
    for (int i = 0; i < 4; i++) {
        piece_init(&p[i], program, (float)(i + 1));
    }
    p[0].work.done = latch_stop_here;
    p[0].work.user = &l;
    submit_piece(executor, &p[0]);
    latch_await(&l);
    assert_int_equal(l.status, KILN_OK);
    assert_false(kiln_ticket_done(p[0].ticket));
    RIG_OK(kiln_executor_try_submit(executor, &p[1].work, NULL, &diag));
    RIG_OK(kiln_executor_try_submit(executor, &p[2].work, &p[2].ticket, &diag));
    assert_int_equal(kiln_executor_try_submit(executor, &p[3].work, &p[3].ticket, NULL),
                     KILN_E_BUSY);
    assert_null(p[3].ticket);
    assert_int_equal(stats_of(executor).refused, 1);
    assert_int_equal(stats_of(executor).in_flight, 2);
    latch_open(&l);
    submit_piece(executor, &p[3]);
    kiln_executor_drain(executor);
    for (int i = 0; i < 4; i++) {
        assert_true(p[i].ticket == NULL || kiln_ticket_done(p[i].ticket));
        piece_check(&p[i]);
        kiln_ticket_release(p[i].ticket);
    }
    kiln_executor_destroy(executor);
    latch_deinit(&l);
    kiln_program_release(program);
}

typedef struct blocked_submit {
    kiln_executor *executor;
    piece *p;
    kiln_status status;
} blocked_submit;

static void submit_there(void *user)
{
    blocked_submit *b = user;
    b->status = kiln_executor_submit(b->executor, &b->p->work, NULL, NULL);
}

static void destroy_there(void *user)
{
    kiln_executor_destroy(user);
}

/* The front thread stands in the callback of a failed upload: what is behind it has not begun, and
 * is cancelled; so is the submit that waits for room. Tickets outlive the executor. */
static void the_end_cancels_what_has_not_begun(void **state)
{
    rig *r = *state;
    kiln_executor *executor = NULL;
    kiln_program *program = open_all(r, "write=fail@3", 2, &executor);
    piece p[5]; /* done, failing, two behind it, and one that finds no room */
    kn_thread *submitter = NULL;
    kn_thread *destroyer = NULL;
    latch l;
    latch_init(&l);
    for (int i = 0; i < 5; i++) {
        piece_init(&p[i], program, (float)(i + 1));
    }
    submit_piece(executor, &p[0]);
    kiln_executor_drain(executor);
    p[1].work.done = latch_stop_here;
    p[1].work.user = &l;
    submit_piece(executor, &p[1]);
    latch_await(&l);
    assert_int_equal(l.status, KILN_E_INTERNAL);
    submit_piece(executor, &p[2]);
    submit_piece(executor, &p[3]);
    blocked_submit b = {executor, &p[4], KILN_OK};
    RIG_OK(kn_thread_start(submit_there, &b, &submitter, &diag));
    while (stats_of(executor).waited == 0) {
    }
    RIG_OK(kn_thread_start(destroy_there, executor, &destroyer, &diag));
    kn_thread_join(submitter);
    assert_int_equal(b.status, KILN_E_CANCELLED);
    latch_open(&l);
    kn_thread_join(destroyer);
    assert_int_equal(kiln_ticket_wait(p[1].ticket, NULL), KILN_E_INTERNAL);
    assert_int_equal(kiln_ticket_wait(p[2].ticket, NULL), KILN_E_CANCELLED);
    assert_int_equal(kiln_ticket_wait(p[3].ticket, NULL), KILN_E_CANCELLED);
    RIG_OK(kiln_ticket_wait(p[0].ticket, &diag));
    piece_check(&p[0]);
    assert_true(kiln_ticket_retain(p[0].ticket) == p[0].ticket);
    kiln_ticket_release(p[0].ticket);
    for (int i = 0; i < 4; i++) {
        kiln_ticket_release(p[i].ticket);
    }
    kiln_ticket_release(NULL);
    latch_deinit(&l);
    kiln_program_release(program);
}

/* A chain of submissions, each made by the callback of the one before. */
typedef struct chain {
    kiln_executor *executor;
    piece *pieces;
    atomic_int next;
    int count;
} chain;

static void chain_on(void *user, kiln_status status, const kiln_diag *diag)
{
    chain *c = user;
    int next = atomic_fetch_add(&c->next, 1);
    (void)diag;
    if (status == KILN_OK && next < c->count) {
        c->pieces[next].work.done = chain_on;
        c->pieces[next].work.user = c;
        assert_int_equal(kiln_executor_try_submit(c->executor, &c->pieces[next].work, NULL, NULL),
                         KILN_OK);
    }
}

static void a_callback_may_submit(void **state)
{
    enum { COUNT = 20 };
    rig *r = *state;
    kiln_executor *executor = NULL;
    kiln_program *program = open_all(r, NULL, 1, &executor);
    piece pieces[COUNT];
    chain c = {.executor = executor, .pieces = pieces, .count = COUNT};
    for (int i = 0; i < COUNT; i++) {
        piece_init(&pieces[i], program, (float)i);
    }
    chain_on(&c, KILN_OK, NULL);
    kiln_executor_drain(executor);
    for (int i = 0; i < COUNT; i++) {
        piece_check(&pieces[i]);
    }
    kiln_executor_destroy(executor);
    kiln_program_release(program);
}

/* Kernels follow one another: a sum over submissions in a buffer of the caller's. */
static void a_buffer_of_the_callers_keeps_its_content(void **state)
{
    rig *r = *state;
    kiln_executor *executor = NULL;
    kiln_program *program = open_all(r, NULL, 3, &executor);
    kiln_buffer *sum = NULL;
    float zero = 0;
    piece p;
    RIG_OK(kiln_buffer_create(r->device, sizeof(p.y) + 256, &sum, &diag));
    kiln_queue *queue = NULL;
    RIG_OK(kiln_queue_create(r->device, &queue, &diag));
    RIG_OK(kiln_queue_fill(queue, sum, 0, &zero, sizeof(zero), sizeof(p.y) + 256, &diag));
    kiln_queue_destroy(queue);
    piece_init(&p, program, 1);
    p.args[2] =
        (kiln_work_arg){.kind = KILN_ARG_BUFFER, .buffer = sum, .offset = 256, .size = sizeof(p.y)};
    for (int i = 0; i < 9; i++) {
        RIG_OK(kiln_executor_submit(executor, &p.work, NULL, &diag));
    }
    p.args[2].output = p.y;
    RIG_OK(kiln_executor_submit(executor, &p.work, NULL, &diag));
    kiln_executor_drain(executor);
    for (int i = 0; i < ITEMS; i++) {
        assert_true(p.y[i] == 10.0F * (float)i);
    }
    kiln_executor_destroy(executor);
    kiln_buffer_destroy(sum);
    kiln_program_release(program);
}

/* As warm as it gets: while one submission's callback stands, the three that fill the executor have
 * all their buffers; and what the first launch left to do in the background is done. */
static void warm_up(kiln_executor *executor, kiln_program *program)
{
    piece pieces[4];
    latch l;
    latch_init(&l);
    for (int i = 0; i < 4; i++) {
        piece_init(&pieces[i], program, (float)i);
    }
    pieces[0].work.done = latch_stop_here;
    pieces[0].work.user = &l;
    RIG_OK(kiln_executor_submit(executor, &pieces[0].work, NULL, &diag));
    latch_await(&l);
    for (int i = 1; i < 4; i++) {
        RIG_OK(kiln_executor_submit(executor, &pieces[i].work, NULL, &diag));
    }
    while (stats_of(executor).used_bytes < 3 * (size_t)512) {
        kn_clock_sleep(1000000);
    }
    latch_open(&l);
    kiln_executor_drain(executor);
    if (executor->device->runtime->capture_worker != NULL) {
        (void)kn_worker_drain(executor->device->runtime->capture_worker, UINT64_MAX);
    }
    latch_deinit(&l);
}

static void nothing_is_allocated_once_warm(void **state)
{
    rig *r = *state;
    kiln_executor *executor = NULL;
    kiln_program *program = open_all(r, NULL, 3, &executor);
    piece pieces[6];
    warm_up(executor, program);
    for (int round = 0; round < 21; round++) {
        if (round == 1) { /* the first round has the tickets of six made */
            kt_failalloc_arm(1, true);
        }
        for (int i = 0; i < 6; i++) {
            piece_init(&pieces[i], program, (float)i);
            RIG_OK(kiln_executor_submit(executor, &pieces[i].work, &pieces[i].ticket, &diag));
        }
        for (int i = 0; i < 6; i++) {
            RIG_OK(kiln_ticket_wait(pieces[i].ticket, &diag));
            kiln_ticket_release(pieces[i].ticket);
        }
    }
    uint64_t count = kt_failalloc_count();
    kt_failalloc_disarm();
    assert_int_equal(count, 0);
    assert_int_equal(stats_of(executor).completed, 4 + 21 * 6);
    kiln_executor_destroy(executor);
    kiln_program_release(program);
}

static bool all_of_it(void *user)
{
    rig *r = ((rig **)user)[0];
    kiln_program *program = ((kiln_program **)user)[1];
    kiln_executor *executor = NULL;
    piece p;
    bool fine = true;
    kiln_status status = kiln_executor_create(r->device, NULL, &executor, NULL);
    if (status != KILN_OK) {
        assert_int_equal(status, KILN_E_NOMEM);
        return false;
    }
    for (int i = 0; i < 3 && fine; i++) {
        piece_init(&p, program, (float)i);
        status = kiln_executor_submit(executor, &p.work, &p.ticket, NULL);
        if (status == KILN_OK) {
            status = kiln_ticket_wait(p.ticket, NULL);
            kiln_ticket_release(p.ticket);
        }
        assert_true(status == KILN_OK || status == KILN_E_NOMEM);
        fine = status == KILN_OK;
    }
    kiln_executor_destroy(executor);
    return fine;
}

static void every_allocation_may_fail(void **state)
{
    rig *r = *state;
    kiln_executor *executor = NULL;
    kiln_program *program = open_all(r, NULL, 1, &executor);
    kiln_executor_destroy(executor);
    rig_launch(r, program, ITEMS, 1); /* what is kept with the program is there */
    void *both[2] = {r, program};
    assert_true(kt_failalloc_each(all_of_it, both) > 5);
    kiln_program_release(program);
}

/* Sizes that do not fit each other: the pool makes new ones, and lets idle ones go when the device
 * has no more or the limit is passed. */
static void the_pool_gives_idle_buffers_back(void **state)
{
    rig *r = *state;
    kiln_executor *executor = NULL;
    (void)setenv("KILN_FAKE_FAULTS", "buffer=nomem@3", 1);
    rig_open(r, NULL);
    kiln_source source = rig_source("kernel one y:floats\ny = 1\n");
    kiln_program *program = rig_build(r, &source);
    kiln_executor_options options = {.struct_size = sizeof(options), .idle_bytes = 8192};
    RIG_OK(kiln_executor_create(r->device, &options, &executor, &diag));
    static const size_t counts[] = {64, 512, 4096, 64};
    static const uint64_t bytes[] = {256, 256 + 2048, 0, 256};
    static float y[4096];
    for (int i = 0; i < 4; i++) {
        kiln_work_arg arg = {.kind = KILN_ARG_BUFFER, .size = counts[i] * 4, .output = y};
        kiln_work work = {.struct_size = sizeof(work),
                          .program = program,
                          .entry = "one",
                          .dims = 1,
                          .global = {counts[i]},
                          .args = &arg,
                          .arg_count = 1};
        memset(y, 0, sizeof(y));
        RIG_OK(kiln_executor_submit(executor, &work, NULL, &diag));
        kiln_executor_drain(executor);
        assert_true(y[0] == 1 && y[counts[i] - 1] == 1);
        assert_int_equal(stats_of(executor).pool_bytes, bytes[i]);
    }
    assert_int_equal(stats_of(executor).failed, 0);
    assert_int_equal(stats_of(executor).pool_bytes_high, 16384);
    assert_int_equal(stats_of(executor).pool_buffers, 1);
    kiln_executor_destroy(executor);
    kiln_program_release(program);
}

static void no_queue_no_executor(void **state)
{
    static const char *const faults[] = {"queue=nomem@1", "queue=nomem@2", "queue=lost@3"};
    rig *r = *state;
    for (size_t i = 0; i < 3; i++) {
        kiln_executor *executor = NULL;
        (void)setenv("KILN_FAKE_FAULTS", faults[i], 1);
        rig_open(r, NULL);
        assert_int_equal(kiln_executor_create(r->device, NULL, &executor, NULL),
                         i == 2 ? KILN_E_DEVICE_LOST : KILN_E_NOMEM);
        assert_null(executor);
        rig_close(r);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_stream_gives_every_result),
        TEST(a_failure_is_its_tickets_alone),
        TEST(what_the_launch_refuses_is_the_tickets),
        TEST(a_full_executor_is_busy),
        TEST(the_end_cancels_what_has_not_begun),
        TEST(a_callback_may_submit),
        TEST(a_buffer_of_the_callers_keeps_its_content),
        TEST(nothing_is_allocated_once_warm),
        TEST(every_allocation_may_fail),
        TEST(the_pool_gives_idle_buffers_back),
        TEST(no_queue_no_executor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
