/* The executor under stress: several threads submit to one that is small, faults are scripted all
 * over, tickets are waited for, polled or forgotten, and the end comes at a random point. Every
 * submission that was accepted is reported exactly once; every result that is said to be there is
 * right. The seed is printed; KILN_TEST_SEED repeats a run. */
#include "unit/core/rig.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <kiln/unstable/executor.h>
#include <kiln/unstable/warm.h>

#include "core/launch/executor.h"
#include "support/suite.h"
#include "sys/thread.h"

enum { ROUNDS = 60, THREADS = 4, PIECES = 24, ITEMS = 16 };

typedef struct piece {
    float a, x[ITEMS], y[ITEMS];
    atomic_int told;
    kiln_status status;
    bool accepted;
} piece;

typedef struct submitter {
    kiln_executor *executor;
    kiln_program *program;
    piece pieces[PIECES];
    uint64_t random;
} submitter;

static uint64_t draw(uint64_t *random, uint64_t below)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return *random % below;
}

static void tell(void *user, kiln_status status, const kiln_diag *diag)
{
    piece *p = user;
    (void)diag;
    p->status = status;
    (void)atomic_fetch_add(&p->told, 1);
}

static kiln_status submit(submitter *s, piece *p, kiln_ticket **ticket, bool wait)
{
    for (int i = 0; i < ITEMS; i++) {
        p->x[i] = (float)i;
        p->y[i] = 2;
    }
    kiln_work_arg args[] = {
        {.kind = KILN_ARG_VALUE, .value = &p->a, .size = sizeof(float)},
        {.kind = KILN_ARG_BUFFER, .size = sizeof(p->x), .input = p->x},
        {.kind = KILN_ARG_BUFFER, .size = sizeof(p->y), .input = p->y, .output = p->y}};
    kiln_work work = {.struct_size = sizeof(work),
                      .program = s->program,
                      .entry = "saxpy",
                      .dims = 1,
                      .global = {ITEMS},
                      .args = args,
                      .arg_count = 3,
                      .done = tell,
                      .user = p};
    return wait ? kiln_executor_submit(s->executor, &work, ticket, NULL)
                : kiln_executor_try_submit(s->executor, &work, ticket, NULL);
}

static void submit_all(void *user)
{
    submitter *s = user;
    for (int i = 0; i < PIECES; i++) {
        piece *p = &s->pieces[i];
        kiln_ticket *ticket = NULL;
        p->a = (float)draw(&s->random, 100);
        kiln_status status =
            submit(s, p, draw(&s->random, 3) == 0 ? NULL : &ticket, draw(&s->random, 4) != 0);
        p->accepted = status == KILN_OK;
        assert_true(status == KILN_OK || status == KILN_E_BUSY);
        if (ticket != NULL && draw(&s->random, 2) == 0) {
            status = kiln_ticket_wait(ticket, NULL);
            assert_int_equal(atomic_load(&p->told), 1);
            assert_int_equal(status, p->status);
        } else if (ticket != NULL) {
            (void)kiln_ticket_done(ticket);
        }
        kiln_ticket_release(ticket);
    }
}

/* Called once for what was accepted, never what was not; and right where it is said to be. */
static void check(const submitter *s, uint64_t *counts)
{
    for (int i = 0; i < PIECES; i++) {
        const piece *p = &s->pieces[i];
        assert_int_equal(atomic_load(&p->told), p->accepted ? 1 : 0);
        for (int j = 0; p->accepted && p->status == KILN_OK && j < ITEMS; j++) {
            assert_true(p->y[j] == p->a * (float)j + 2);
        }
        counts[0] += p->accepted;
        counts[1] += p->accepted && p->status == KILN_OK;
        counts[2] += p->accepted && p->status == KILN_E_CANCELLED;
    }
}

static void one_round(rig *r, uint64_t *random, uint64_t *counts)
{
    static const char *const ops[] = {"write", "read", "launch", "buffer"};
    static const char *const whats[] = {"fail", "lost", "nomem"};
    char faults[512];
    int used = 0;
    for (int i = 0; i < 10; i++) {
        used +=
            snprintf(faults + used, sizeof(faults) - (size_t)used, "%s%s=%s@%u", i > 0 ? "," : "",
                     ops[draw(random, 4)], whats[draw(random, 3)], (unsigned)draw(random, 60) + 1);
    }
    (void)setenv("KILN_FAKE_FAULTS", faults, 1);
    rig_open(r, NULL);
    kiln_source source = rig_source(rig_saxpy);
    kiln_program *program = rig_build(r, &source);
    kiln_executor *executor = NULL;
    kiln_executor_options options = {.struct_size = sizeof(options),
                                     .in_flight = (uint32_t)draw(random, 4) + 1,
                                     .idle_bytes = draw(random, 2) * 512};
    RIG_OK(kiln_executor_create(r->device, &options, &executor, &diag));
    submitter *all = calloc(THREADS, sizeof(*all));
    kn_thread *threads[THREADS] = {NULL};
    assert_non_null(all);
    for (int i = 0; i < THREADS; i++) {
        all[i] = (submitter){.executor = executor, .program = program};
        all[i].random = draw(random, UINT64_MAX) | 1;
        RIG_OK(kn_thread_start(submit_all, &all[i], &threads[i], &diag));
    }
    for (int i = 0; i < THREADS; i++) {
        kn_thread_join(threads[i]);
    }
    /* The end, with as much in flight as there is room for. */
    submitter last = {.executor = executor, .program = program};
    int extra = (int)draw(random, options.in_flight + 1);
    for (int i = 0; i < extra; i++) {
        last.pieces[i].a = (float)i;
        last.pieces[i].accepted = submit(&last, &last.pieces[i], NULL, false) == KILN_OK;
    }
    kiln_executor_destroy(executor);
    for (int i = 0; i < THREADS; i++) {
        check(&all[i], counts);
    }
    check(&last, counts);
    free(all);
    kiln_program_release(program);
    rig_close(r);
}

#define TEST(name) KT_TEST_WITH(rig_setup, rig_teardown, name)

TEST(failures_full_queues_and_the_end_at_any_point)
{
    rig *r = *state;
    const char *given = getenv("KILN_TEST_SEED");
    uint64_t random = given != NULL ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    uint64_t counts[3] = {0, 0, 0};
    printf("KILN_TEST_SEED=%llu\n", (unsigned long long)random);
    random = random * 2654435761u | 1;
    for (int i = 0; i < ROUNDS; i++) {
        one_round(r, &random, counts);
    }
    assert_true(counts[0] > counts[1] && counts[1] > 0); /* some failed, most did not */
}

/* Submits that wait for room while the executor goes. */
typedef struct waiter {
    submitter s;
} waiter;

static void submit_until_cancelled(void *user)
{
    waiter *w = user;
    kiln_status status = submit(&w->s, &w->s.pieces[0], NULL, true);
    w->s.pieces[0].accepted = status == KILN_OK;
    assert_true(status == KILN_OK || status == KILN_E_CANCELLED);
}

static void hold(void *user, kiln_status status, const kiln_diag *diag)
{
    atomic_bool *go = user;
    (void)status;
    (void)diag;
    while (!atomic_load(go)) {
    }
}

static void open_gate(void *user)
{
    atomic_store((atomic_bool *)user, true);
}

/* The back thread is held in a callback until the waiters wait; then the gate opens and the end
 * comes, both at once. */
TEST(the_end_while_submits_wait)
{
    rig *r = *state;
    rig_open(r, NULL);
    kiln_source source = rig_source(rig_saxpy);
    kiln_program *program = rig_build(r, &source);
    for (int round = 0; round < 40; round++) {
        kiln_executor *executor = NULL;
        kiln_executor_options options = {.struct_size = sizeof(options), .in_flight = 1};
        static waiter waiters[THREADS];
        kn_thread *threads[THREADS + 1] = {NULL};
        atomic_bool go;
        float a = 1, y[ITEMS] = {0};
        kiln_work_arg args[] = {{.kind = KILN_ARG_VALUE, .value = &a, .size = sizeof(a)},
                                {.kind = KILN_ARG_BUFFER, .size = sizeof(y), .input = y},
                                {.kind = KILN_ARG_BUFFER, .size = sizeof(y), .input = y}};
        kiln_work work = {.struct_size = sizeof(work),
                          .program = program,
                          .entry = "saxpy",
                          .dims = 1,
                          .global = {ITEMS},
                          .args = args,
                          .arg_count = 3,
                          .done = hold,
                          .user = &go};
        atomic_init(&go, false);
        RIG_OK(kiln_executor_create(r->device, &options, &executor, &diag));
        RIG_OK(kiln_executor_submit(executor, &work, NULL, &diag));
        for (int i = 0; i < THREADS; i++) {
            waiters[i] = (waiter){.s = {.executor = executor, .program = program}};
            RIG_OK(kn_thread_start(submit_until_cancelled, &waiters[i], &threads[i], &diag));
        }
        uint32_t waiting = 0;
        while (waiting < THREADS - 1) { /* one got the slot that came free before the callback */
            kn_mutex_lock(&executor->mutex);
            waiting = executor->stats.submitted == 2 ? executor->submitters : 0;
            kn_mutex_unlock(&executor->mutex);
        }
        RIG_OK(kn_thread_start(open_gate, &go, &threads[THREADS], &diag));
        kiln_executor_destroy(executor);
        for (int i = 0; i <= THREADS; i++) {
            kn_thread_join(threads[i]);
        }
        for (int i = 0; i < THREADS; i++) {
            const piece *p = &waiters[i].s.pieces[0];
            assert_int_equal(atomic_load(&p->told), p->accepted ? 1 : 0);
        }
    }
    kiln_program_release(program);
    rig_close(r);
}

/* --- programs that switch, and warming, while all of that goes on ----------------------------- */

/* Two kernels with one result, so that a launch is right before the switch and after it. */
static const char saxpy_again[] = "kernel saxpy a:float x:floats y:floats\ny = y a x * +\n";

/* The end, in either order, with compiles waiting or running. */
static void end_either_way(rig *r, kiln_program *program, kiln_warm *warm, bool program_first)
{
    if (program_first) {
        kiln_program_release(program);
    }
    kiln_warm_destroy(warm);
    if (!program_first) {
        kiln_program_release(program);
    }
    rig_close(r);
}

static void one_switching_round(rig *r, uint64_t *random, uint64_t *counts, unsigned round)
{
    char faults[160], texts[8][128];
    kiln_source sources[8];
    kiln_warm_item items[8];
    kiln_warm *warm = NULL;
    kiln_program *program = NULL;
    kiln_executor *executor = NULL;
    /* Also the compile behind the fallback fails now and then: it stays. */
    (void)snprintf(faults, sizeof(faults),
                   "link=fail@%u,launch=lost@%u,write=fail@%u,load=nomem@%u",
                   (unsigned)draw(random, 8) + 2, (unsigned)draw(random, 30) + 1,
                   (unsigned)draw(random, 30) + 1, (unsigned)draw(random, 8) + 2);
    (void)setenv("KILN_FAKE_FAULTS", faults, 1);
    rig_open(r, NULL);
    for (int i = 0; i < 8; i++) {
        (void)snprintf(texts[i], sizeof(texts[i]),
                       "kernel saxpy a:float x:floats y:floats\ny = a x * y + %u + %u -\n",
                       round * 8 + (unsigned)i, round * 8 + (unsigned)i);
        sources[i] = rig_source(texts[i]);
        items[i] = (kiln_warm_item){&sources[i], 1};
    }
    const kiln_source generic = rig_source(saxpy_again);
    const kiln_build_options options = {.struct_size = sizeof(options),
                                        .background = true,
                                        .fallback = &generic,
                                        .fallback_count = 1};
    const kiln_executor_options small = {.struct_size = sizeof(small),
                                         .in_flight = (uint32_t)draw(random, 3) + 1};
    kiln_status status = kiln_warm_start(r->device, items, 8, NULL, &warm, NULL);
    assert_int_equal(status, KILN_OK);
    status = kiln_program_build(r->device, &sources[draw(random, 8)], 1, &options, &program, NULL);
    assert_true((status == KILN_OK) == (program != NULL)); /* else a scripted fault */
    if (program != NULL) {
        RIG_OK(kiln_executor_create(r->device, &small, &executor, &diag));
        submitter *all = calloc(2, sizeof(*all));
        kn_thread *threads[2] = {NULL};
        assert_non_null(all);
        for (int i = 0; i < 2; i++) {
            all[i] = (submitter){.executor = executor, .program = program};
            all[i].random = draw(random, UINT64_MAX) | 1;
            RIG_OK(kn_thread_start(submit_all, &all[i], &threads[i], &diag));
        }
        if (draw(random, 2) == 0) {
            kiln_warm_cancel(warm);
        }
        for (int i = 0; i < 2; i++) {
            kn_thread_join(threads[i]);
        }
        kiln_executor_destroy(executor);
        check(&all[0], counts);
        check(&all[1], counts);
        free(all);
    }
    end_either_way(r, program, warm, draw(random, 2) == 0);
}

TEST(programs_that_switch_and_warming_at_once)
{
    rig *r = *state;
    const char *given = getenv("KILN_TEST_SEED");
    uint64_t random = given != NULL ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    uint64_t counts[3] = {0, 0, 0};
    printf("KILN_TEST_SEED=%llu\n", (unsigned long long)random);
    random = random * 2654435761u | 1;
    for (unsigned i = 0; i < 25; i++) {
        one_switching_round(r, &random, counts, i);
    }
    assert_true(counts[1] > 0);
}

KT_MAIN(NULL, NULL)
