/* Tuning that is asked for senselessly, and tuning where something goes wrong. */
#include "unit/tune/tune_bench.h"

#include <stdlib.h>
#include <string.h>

#include "support/failalloc.h"
#include "sys/thread.h"

/* --- bad requests ----------------------------------------------------------------------------- */

static void expect_refused(bench *b, const char *why)
{
    kiln_diag diag = KILN_DIAG_INIT;
    assert_int_equal(kiln_tune(b->r->device, &b->kernel, &b->options, &b->tuning, &diag),
                     KILN_E_INVALID);
    if (strstr(diag.why, why) == NULL) {
        fail_msg("\"%s\" is not in: %s", why, diag.why);
    }
    kiln_diag_clear(&diag);
}

/* Refused with the change made, which is taken back. */
#define REFUSED(why, ...)                                                                          \
    do {                                                                                           \
        const bench before = b;                                                                    \
        __VA_ARGS__;                                                                               \
        expect_refused(&b, why);                                                                   \
        b = before;                                                                                \
    } while (0)

static void senseless_lists_are_refused(void **state)
{
    bench b;
    kiln_diag diag = KILN_DIAG_INIT;
    bench_open(&b, state);
    expect_refused(&b, "no variants");
    bench_add_usual(&b);
    REFUSED("struct_size", b.kernel.struct_size = 1);
    REFUSED("its name", b.kernel.name = "no spaces here");
    REFUSED("more than 64", b.kernel.variant_count = 65);
    REFUSED("sizes", b.kernel.size_count = 9);
    REFUSED("flops", b.kernel.flops = -1);
    REFUSED("same name", b.variants[2].name = "plain");
    REFUSED("name is missing", b.variants[2].name = "");
    REFUSED("no entry", b.variants[2].entry = NULL);
    REFUSED("struct_size", b.variants[2].launch.struct_size = 0);
    REFUSED("text is not set", b.sources[2].text = NULL);
    for (size_t i = 0; i < 3; i++) {
        b.sources[i].language = KILN_LANG_CUDA;
    }
    assert_int_equal(kiln_tune(b.r->device, &b.kernel, &b.options, &b.tuning, &diag),
                     KILN_E_UNSUPPORTED);
    kiln_diag_clear(&diag);
    bench_close(&b);
}

static void senseless_options_are_refused(void **state)
{
    bench b;
    bench_open(&b, state);
    bench_add_usual(&b);
    REFUSED("struct_size", b.options.struct_size = 0);
    REFUSED("without outputs", b.options.output_count = 0);
    REFUSED("arguments are missing", b.options.args = NULL);
    REFUSED("rounds", b.options.rounds_max = 1001);
    REFUSED("not a buffer", b.output.arg = 2);
    REFUSED("multiple of the element size", b.output.element = (kiln_element)99);
    REFUSED("negative", b.output.absolute = -1);
    REFUSED("past the end of the buffer", b.args[1].offset = sizeof(float) * ITEMS);
    bench_close(&b);
}

/* --- trouble ---------------------------------------------------------------------------------- */

static void a_lost_device_ends_it(void **state)
{
    bench b;
    kiln_diag diag = KILN_DIAG_INIT;
    bench_open(&b, state);
    bench_add_usual(&b);
    b.r->fake->faults.rows[0] = (kn_fake_fault){FAKE_LAUNCH, "lost", 4};
    b.r->fake->faults.count = 1;
    assert_int_equal(kiln_tune(b.r->device, &b.kernel, &b.options, &b.tuning, &diag),
                     KILN_E_DEVICE_LOST);
    assert_int_equal(diag.vendor_code, -(int64_t)FAKE_LAUNCH - 1);
    assert_int_equal(rig_stats(b.r).tunings, 0);
    kiln_diag_clear(&diag);
    bench_close(&b);
}

static void without_a_cache_it_is_measured_each_time(void **state)
{
    bench b;
    (void)setenv("KILN_NO_CACHE", "1", 1);
    bench_open(&b, state);
    bench_add_usual(&b);
    bench_tune(&b);
    assert_int_equal(b.tuning.variant, 2);
    assert_int_equal(bench_picked(&b), 0);
    bench_close(&b);
}

typedef struct progress {
    uint32_t checks, rounds;
} progress;

static void on_progress(void *user, const char *what, uint32_t round, uint32_t limit)
{
    progress *p = user;
    assert_non_null(what);
    assert_true(round <= limit);
    p->checks += round == 0;
    p->rounds += round != 0;
}

static void progress_is_told(void **state)
{
    bench b;
    progress p = {0};
    bench_open(&b, state);
    bench_add_usual(&b);
    b.options.progress = on_progress;
    b.options.user = &p;
    b.options.rows = NULL; /* rows are for who wants them */
    bench_tune(&b);
    assert_int_equal(p.checks, 3);
    assert_true(p.rounds >= 8);
    assert_string_equal(kiln_tune_outcome_name(KILN_TUNE_BEHIND), "behind");
    assert_string_equal(kiln_tune_outcome_name((kiln_tune_outcome)99), "unknown");
    bench_close(&b);
}

/* --- side by side ----------------------------------------------------------------------------- */

typedef struct worker {
    bench b; /* a kernel and buffers of its own, on the first one's runtime */
    bool tunes;
    size_t bad;
} worker;

static void run_worker(void *user)
{
    worker *w = user;
    for (int i = 0; i < 4; i++) {
        kiln_tuning tuning = {.struct_size = sizeof(tuning)};
        kiln_status status = KILN_OK;
        if (w->tunes) {
            w->b.options.again = i % 2 == 1;
            status = kiln_tune(w->b.r->device, &w->b.kernel, &w->b.options, &tuning, NULL);
            w->bad += status != KILN_OK || tuning.variant != 2;
        } else {
            status = bench_build(&w->b, &tuning);
            w->bad += status != KILN_OK || (tuning.variant != 2 && tuning.known);
        }
    }
}

/* Some tune the same kernel while others build it: each gets the choice, or, before there is one,
 * the baseline. */
static void many_threads_may_tune_and_build(void **state)
{
    enum { WORKERS = 4 };
    worker *workers = calloc(WORKERS, sizeof(*workers));
    kn_thread *threads[WORKERS] = {NULL};
    assert_non_null(workers);
    for (size_t i = 0; i < WORKERS; i++) {
        if (i == 0) {
            bench_open(&workers[0].b, state);
        } else {
            bench_share(&workers[i].b, &workers[0].b);
        }
        bench_add_usual(&workers[i].b);
        workers[i].tunes = i % 2 == 0;
    }
    for (size_t i = 0; i < WORKERS; i++) {
        assert_int_equal(kn_thread_start(run_worker, &workers[i], &threads[i], NULL), KILN_OK);
    }
    for (size_t i = 0; i < WORKERS; i++) {
        kn_thread_join(threads[i]);
        assert_int_equal(workers[i].bad, 0);
    }
    assert_int_equal(bench_picked(&workers[0].b), 2);
    for (size_t i = 1; i < WORKERS; i++) {
        kiln_buffer_destroy(workers[i].b.x);
        kiln_buffer_destroy(workers[i].b.y);
    }
    bench_close(&workers[0].b);
    free(workers);
}

/* With any allocation failing there is a choice, or KILN_E_NOMEM; a variant that found no memory to
 * compile is left out at worst. */
static bool tune_body(void *user)
{
    bench *b = user;
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_program *program = NULL;
    b->options.again = true;
    kiln_status status = kiln_tune(b->r->device, &b->kernel, &b->options, &b->tuning, &diag);
    kiln_diag_clear(&diag);
    if (status == KILN_OK) {
        status = kiln_tuned_build(b->r->device, &b->kernel, NULL, &program, &b->tuning, &diag);
        kiln_diag_clear(&diag);
    }
    assert_true((status == KILN_OK) == (program != NULL));
    kiln_program_release(program);
    if (status != KILN_OK) {
        assert_true(kt_failalloc_fired());
        return false;
    }
    return true;
}

static void memory_may_run_out(void **state)
{
    bench b;
    bench_open(&b, state);
    bench_add_usual(&b);
    b.options.rounds_min = 1;
    b.options.rounds_max = 2;
    bench_tune(&b); /* what is lazily made is there */
    assert_true(kt_failalloc_each(tune_body, &b) > 20);
    bench_close(&b);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(senseless_lists_are_refused),
        TEST(senseless_options_are_refused),
        TEST(a_lost_device_ends_it),
        TEST(without_a_cache_it_is_measured_each_time),
        TEST(progress_is_told),
        TEST(many_threads_may_tune_and_build),
        TEST(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
