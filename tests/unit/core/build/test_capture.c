/* Captures after a launch, and the ticker that reports slow work. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/build/capture.h"
#include "core/build/progress.h"
#include "support/cmocka.h"
#include "sys/clock.h"
#include "unit/core/rig.h"

static void a_capture_replaces_the_entry(void **state)
{
    rig *r = *state;
    kiln_source source = rig_source("warn look out\nkernel saxpy a:float x:floats y:floats\n"
                                    "y = a x * y +\n");
    for (int process = 0; process < 3; process++) {
        rig_open(r, NULL);
        kiln_program *program = rig_build(r, &source);
        assert_int_equal(kiln_program_get_info(program)->compiles, process == 0 ? 2 : 0);
        /* K9: the log is the compile's, also from a captured entry. */
        assert_string_equal(kiln_program_get_info(program)->log,
                            "test.fake:1: warning: look out\n");
        rig_launch(r, program, 64, 8);
        rig_launch(r, program, 64, 8);
        kiln_program_release(program); /* the pending capture keeps it */
        kn_capture_finish(r->runtime);
        /* The first process captures; the second finds a binary that is finished for this shape. */
        assert_int_equal(rig_calls(r, FAKE_CAPTURE), process == 0 ? 1 : 0);
        rig_close(r);
    }
    /* A new shape is captured too, and adds to what was there. */
    rig_open(r, NULL);
    kiln_program *program = rig_build(r, &source);
    rig_launch(r, program, 64, 16);
    kn_capture_finish(r->runtime);
    assert_int_equal(rig_calls(r, FAKE_CAPTURE), 1);
    kiln_program_release(program);
    rig_close(r);
    rig_open(r, NULL);
    program = rig_build(r, &source);
    rig_launch(r, program, 64, 16);
    rig_launch(r, program, 64, 8);
    kn_capture_finish(r->runtime);
    assert_int_equal(rig_calls(r, FAKE_CAPTURE), 0);
    kiln_program_release(program);
}

static void a_capture_does_not_delay_the_launch(void **state)
{
    rig *r = *state;
    kiln_source source = rig_source(rig_saxpy);
    assert_int_equal(setenv("KILN_FAKE_FAULTS", "capture=slow", 1), 0); /* 100 ms */
    rig_open(r, NULL);
    kiln_program *program = rig_build(r, &source);
    uint64_t start = kn_clock_now();
    for (uint64_t local = 1; local <= 64; local *= 2) {
        rig_launch(r, program, 64, local);
    }
    uint64_t launched = kn_clock_now() - start;
    kiln_program_release(program);
    start = kn_clock_now();
    kiln_runtime_destroy(r->runtime); /* waits: nothing is lost */
    r->runtime = NULL;
    assert_true(launched < kn_clock_now() - start + 90000000ull);
    rig_close(r);
    assert_int_equal(unsetenv("KILN_FAKE_FAULTS"), 0);
    rig_open(r, NULL);
    program = rig_build(r, &source);
    for (uint64_t local = 1; local <= 64; local *= 2) {
        rig_launch(r, program, 64, local);
    }
    kn_capture_finish(r->runtime);
    assert_int_equal(rig_calls(r, FAKE_CAPTURE), 0);
    kiln_program_release(program);
}

static void a_capture_that_fails_harms_nobody(void **state)
{
    rig *r = *state;
    kiln_source source = rig_source(rig_saxpy);
    assert_int_equal(setenv("KILN_FAKE_FAULTS", "capture=fail", 1), 0);
    rig_open(r, NULL);
    kiln_program *program = rig_build(r, &source);
    uint64_t puts = rig_stats(r).puts;
    rig_launch(r, program, 64, 8);
    kn_capture_finish(r->runtime);
    assert_int_equal(rig_stats(r).puts, puts);
    kiln_program_release(program);
    rig_close(r);
    assert_int_equal(unsetenv("KILN_FAKE_FAULTS"), 0);
    rig_open(r, NULL);
    uint32_t compiles = 9;
    (void)rig_key(r, &source, &compiles);
    assert_int_equal(compiles, 0);
}

typedef struct told {
    int starts, ticks;
    double last;
} told;

static void tell(void *user, const char *what, double seconds)
{
    told *t = user;
    assert_non_null(strstr(what, "big.fake"));
    if (seconds == 0.0) {
        t->starts++;
    } else {
        t->ticks++;
        t->last = seconds;
    }
}

static void U1_slow_work_is_told_of_once_a_second(void **state)
{
    told t = {0, 0, 0};
    kn_ticker ticker;
    kiln_build_options options = {.struct_size = sizeof(options), .progress = tell, .user = &t};
    kn_ticker_start(&ticker, &options, "stage", "big.fake");
    assert_null(ticker.thread); /* nothing is slow yet, and a hit ends here */
    kn_ticker_compile(&ticker);
    assert_int_equal(t.starts, 1);
    kn_clock_sleep(1200000000ull);
    kn_ticker_stop(&ticker);
    assert_int_equal(t.starts, 1);
    assert_int_equal(t.ticks, 1);
    assert_true(t.last >= 1.0 && t.last < 60.0);
    /* Nobody listens: nothing is started. */
    options.progress = NULL;
    kn_ticker_start(&ticker, &options, "stage", "big.fake");
    assert_null(ticker.thread);
    kn_ticker_wait(&ticker);
    kn_ticker_compile(&ticker);
    assert_null(ticker.thread);
    kn_ticker_stop(&ticker);
}

static void count_tick(void *user, const char *what, double seconds)
{
    atomic_fetch_add((atomic_int *)user, seconds > 0.0 ? 1 : 1000);
}

static void a_wait_for_anothers_compile_ticks_too(void **state)
{
    atomic_int ticks = 0;
    kn_ticker ticker;
    kiln_build_options options = {
        .struct_size = sizeof(options), .progress = count_tick, .user = &ticks};
    kn_ticker_start(&ticker, &options, "stage", "big.fake");
    kn_ticker_wait(&ticker);
    kn_ticker_wait(&ticker); /* again, when the leader had nothing to share */
    while (atomic_load(&ticks) == 0) {
        kn_clock_sleep(10000000ull);
    }
    kn_ticker_stop(&ticker);
    assert_between(atomic_load(&ticks), 1, 999); /* no compile was reported */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_capture_replaces_the_entry),          TEST(a_capture_does_not_delay_the_launch),
        TEST(a_capture_that_fails_harms_nobody),     TEST(U1_slow_work_is_told_of_once_a_second),
        TEST(a_wait_for_anothers_compile_ticks_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
