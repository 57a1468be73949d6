/* Compiles behind a fallback: what runs meanwhile, the switch, failures, and the end. */
#include "unit/core/gate.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <kiln/unstable/background.h>
#include <kiln/unstable/executor.h>
#include <kiln/unstable/reflect.h>

enum { ITEMS = 6 };

static kiln_program *build_behind(rig *r, const kernel *k, const kernel *generic)
{
    kiln_program *program = NULL;
    kiln_build_options options = {.struct_size = sizeof(options), .background = true};
    if (generic != NULL) {
        options.fallback = &generic->source;
        options.fallback_count = 1;
    }
    RIG_OK(kiln_program_build(r->device, &k->source, 1, &options, &program, &diag));
    return program;
}

static void a_launch_runs_the_fallback_and_then_the_program(void **state)
{
    rig *r = *state;
    kernel slow, generic;
    rig_open(r, "gated");
    kernel_init(&slow, "slow", 7);
    kernel_init(&generic, "generic", 4);
    gate_shut(false);
    kiln_program *program = build_behind(r, &slow, &generic);
    gate_await(1);
    assert_int_equal(kiln_program_ready(program, NULL), KILN_E_BUSY);
    assert_true(gate_run(r, program) == 4);
    assert_int_equal(kiln_program_entry_count(program), 1);
    gate_open();
    RIG_OK(kiln_program_wait(program, &diag));
    RIG_OK(kiln_program_ready(program, &diag));
    assert_true(gate_run(r, program) == 7);
    assert_int_equal(kiln_program_get_info(program)->compiles, 2);
    /* The next build, here or in another process, finds it and waits for nothing. */
    kiln_program *again = build_behind(r, &slow, &generic);
    RIG_OK(kiln_program_ready(again, &diag));
    assert_true(gate_run(r, again) == 7);
    assert_int_equal(gate.begun, 2);
    kiln_program_release(again);
    kiln_program_release(program);
}

static void a_failure_is_told_once_and_the_fallback_stays(void **state)
{
    rig *r = *state;
    kernel slow, generic;
    kiln_diag why = KILN_DIAG_INIT;
    rig_open(r, "gated");
    kernel_init(&slow, "slow", 7);
    kernel_init(&generic, "generic", 4);
    gate_shut(true);
    kiln_program *program = build_behind(r, &slow, &generic);
    gate_await(1);
    rig_log_start();
    gate_open();
    assert_int_equal(kiln_program_wait(program, &why), KILN_E_COMPILE);
    assert_non_null(strstr(why.why, "told to fail"));
    kiln_diag_clear(&why);
    for (int i = 0; i < 3; i++) {
        assert_true(gate_run(r, program) == 4);
        assert_int_equal(kiln_program_ready(program, &why), KILN_E_COMPILE);
        kiln_diag_clear(&why);
    }
    const char *log = rig_log_stop();
    const char *told = strstr(log, "told to fail");
    assert_non_null(told);
    assert_null(strstr(told + 1, "told to fail"));
    kiln_program_release(program);
}

/* Another device of the runtime does not stand in. */
static void without_a_fallback_the_build_waits(void **state)
{
    rig *r = *state;
    kernel k;
    assert_int_equal(setenv("KILN_FAKE", "1", 1), 0);
    rig_open(r, "gated,fake");
    kernel_init(&k, "plain", 5);
    kiln_program *program = build_behind(r, &k, NULL);
    RIG_OK(kiln_program_ready(program, &diag));
    assert_true(gate_run(r, program) == 5);
    kiln_program_release(program);
}

static void a_program_released_early_is_given_up(void **state)
{
    rig *r = *state;
    kernel slow[3], generic;
    assert_int_equal(setenv("KILN_COMPILE_JOBS", "1", 1), 0);
    rig_open(r, "gated");
    kernel_init(&generic, "generic", 4);
    gate_shut(false);
    for (int i = 0; i < 3; i++) {
        kernel_init(&slow[i], "slow", i);
        kiln_program *program = build_behind(r, &slow[i], &generic);
        if (i == 0) {
            gate_await(1); /* it has the one thread */
        }
        kiln_program_release(program);
    }
    gate_open();
    rig_close(r);                    /* with the first one's compile in flight, or just over */
    assert_int_equal(gate.begun, 2); /* generic, and the first */
}

static void the_runtime_goes_with_compiles_waiting(void **state)
{
    rig *r = *state;
    kernel kernels[ITEMS], generic;
    assert_int_equal(setenv("KILN_COMPILE_JOBS", "1", 1), 0);
    for (int round = 0; round < 5; round++) {
        rig_open(r, "gated");
        kernel_init(&generic, "generic", 100 + round);
        for (int i = 0; i < ITEMS; i++) {
            kernel_init(&kernels[i], "plain", round * ITEMS + i);
            kiln_program_release(build_behind(r, &kernels[i], &generic));
        }
        rig_close(r);
    }
}

typedef struct launcher {
    rig *r;
    kiln_program *program;
    bool right;
    atomic_uint *rounds;
} launcher;

static void launch_until_ready(void *user)
{
    launcher *l = user;
    float last = 4;
    l->right = true;
    while (last < 7) {
        float now = gate_run(l->r, l->program);
        l->right = l->right && (now == 4 || now == 7) && now >= last; /* it never goes back */
        last = now;
        (void)atomic_fetch_add(l->rounds, 1);
    }
}

/* Threads launch while the program switches under them. */
static void launches_and_the_switch_at_once(void **state)
{
    enum { THREADS = 3 };
    rig *r = *state;
    kernel slow, generic;
    launcher launchers[THREADS];
    kn_thread *threads[THREADS] = {NULL};
    atomic_uint rounds;
    atomic_init(&rounds, 0);
    rig_open(r, "gated");
    kernel_init(&slow, "slow", 7);
    kernel_init(&generic, "generic", 4);
    gate_shut(false);
    kiln_program *program = build_behind(r, &slow, &generic);
    for (int i = 0; i < THREADS; i++) {
        launchers[i] = (launcher){r, program, false, &rounds};
        RIG_OK(kn_thread_start(launch_until_ready, &launchers[i], &threads[i], &diag));
    }
    while (atomic_load(&rounds) < 3 * THREADS) {
    }
    gate_open();
    for (int i = 0; i < THREADS; i++) {
        kn_thread_join(threads[i]);
        assert_true(launchers[i].right);
    }
    kiln_program_release(program);
}

/* The executor takes such a program as any other. */
static void an_executor_runs_it(void **state)
{
    rig *r = *state;
    kernel slow, generic;
    kiln_executor *executor = NULL;
    rig_open(r, "gated");
    kernel_init(&slow, "slow", 7);
    kernel_init(&generic, "generic", 4);
    gate_shut(false);
    kiln_program *program = build_behind(r, &slow, &generic);
    RIG_OK(kiln_executor_create(r->device, NULL, &executor, &diag));
    for (int round = 0; round < 6; round++) {
        float a = 1, x[GATE_WIDTH] = {0}, y[GATE_WIDTH];
        kiln_ticket *ticket = NULL;
        for (int i = 0; i < GATE_WIDTH; i++) {
            y[i] = (float)round;
        }
        kiln_work_arg args[] = {
            {.kind = KILN_ARG_VALUE, .value = &a, .size = sizeof(a)},
            {.kind = KILN_ARG_BUFFER, .size = sizeof(x), .input = x},
            {.kind = KILN_ARG_BUFFER, .size = sizeof(y), .input = y, .output = y}};
        kiln_work work = {.struct_size = sizeof(work),
                          .program = program,
                          .entry = "saxpy",
                          .dims = 1,
                          .global = {GATE_WIDTH},
                          .args = args,
                          .arg_count = 3};
        RIG_OK(kiln_executor_submit(executor, &work, &ticket, &diag));
        RIG_OK(kiln_ticket_wait(ticket, &diag));
        kiln_ticket_release(ticket);
        assert_true(y[0] == (float)(round + (round > 2 ? 7 : 4)) && y[GATE_WIDTH - 1] == y[0]);
        if (round == 2) {
            gate_open();
            RIG_OK(kiln_program_wait(program, &diag));
        }
    }
    kiln_executor_destroy(executor);
    kiln_program_release(program);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, gate_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_launch_runs_the_fallback_and_then_the_program),
        TEST(a_failure_is_told_once_and_the_fallback_stays),
        TEST(without_a_fallback_the_build_waits),
        TEST(a_program_released_early_is_given_up),
        TEST(the_runtime_goes_with_compiles_waiting),
        TEST(launches_and_the_switch_at_once),
        TEST(an_executor_runs_it),
    };
    return cmocka_run_group_tests(tests, gate_register, NULL);
}
