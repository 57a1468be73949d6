/* Tuning on the fake backend, whose clock gives each launch the same time whenever it is made: what
 * is chosen, what is refused, what is kept, and what makes it stale. Counters tell who measured. */
#include "unit/tune/tune_bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kiln/unstable/pack.h>
#include <kiln/unstable/tune.h>

static const char wrong_text[] = "kernel f x:floats y:floats\ny = x 2 *\n";
static const char broken_text[] = "kernel f x:floats y:floats\ny = nothing\n";
static const char unrolled_text[] = "kernel f x:floats y:floats\ny = x 2 * ONE +\n";
static const char in_place_text[] = "kernel f x:floats y:floats\ny = y x +\n";

static void the_fastest_is_chosen_and_kept(void **state)
{
    bench b;
    bench_open(&b, state);
    bench_add_usual(&b);
    assert_int_equal(bench_picked(&b), 0); /* nothing is known */
    bench_tune(&b);
    assert_int_equal(b.tuning.variant, 2); /* the same code in fewer groups */
    assert_int_equal(b.tuning.baseline, 0);
    assert_true(b.tuning.known);
    assert_int_equal(b.tuning.origin, KILN_ORIGIN_NONE);
    assert_true(b.tuning.ns > 0 && b.tuning.ns < b.tuning.baseline_ns);
    assert_true(b.tuning.flops_per_s == 32e9 / (double)b.tuning.ns);
    assert_true(b.tuning.bytes_per_s == 128e9 / (double)b.tuning.ns);
    assert_int_equal(b.tuning.launches, rig_calls(b.r, FAKE_LAUNCH));
    assert_int_equal(b.rows[2].outcome, KILN_TUNE_CHOSEN);
    assert_int_equal(b.rows[0].outcome, KILN_TUNE_BEHIND);
    assert_true(b.rows[2].samples >= 8 && b.rows[0].samples >= 5);
    assert_int_equal(b.rows[2].median_ns, b.tuning.ns);
    assert_int_equal(rig_stats(b.r).tunings, 1);
    assert_int_equal(rig_stats(b.r).tune_launches, b.tuning.launches);
    assert_int_equal(bench_picked(&b), 2);
    assert_int_equal(rig_stats(b.r).tuned_hits, 1);
    bench_close(&b);
}

/* Asserted on the driver's count of launches: none. */
static void a_second_process_measures_nothing(void **state)
{
    bench first;
    bench_open(&first, state);
    bench_add_usual(&first);
    bench_tune(&first);
    bench_close(&first);

    bench b;
    bench_open(&b, state);
    bench_add_usual(&b);
    kiln_tuning found = {.struct_size = sizeof(found)};
    assert_int_equal(kiln_tuned_find(b.r->device, &b.kernel, &found, NULL), KILN_OK);
    assert_int_equal(found.variant, 2);
    assert_int_equal(found.ns, first.tuning.ns);
    assert_int_equal(found.origin, KILN_ORIGIN_DISK);
    assert_int_equal(bench_picked(&b), 2);
    bench_tune(&b);
    assert_int_equal(b.tuning.variant, 2);
    assert_int_equal(b.tuning.launches, 0);
    assert_int_equal(b.tuning.origin, KILN_ORIGIN_MEMORY);
    assert_true(b.tuning.flops_per_s == first.tuning.flops_per_s);
    assert_int_equal(b.rows[2].outcome, KILN_TUNE_CHOSEN);
    for (size_t i = 0; i < b.kernel.variant_count; i++) { /* all that was measured is known */
        assert_int_equal(b.rows[i].outcome, first.rows[i].outcome);
        assert_int_equal(b.rows[i].samples, first.rows[i].samples);
        assert_int_equal(b.rows[i].median_ns, first.rows[i].median_ns);
    }
    assert_int_equal(rig_calls(b.r, FAKE_LAUNCH), 0);
    assert_int_equal(rig_calls(b.r, FAKE_COMPILE), 0);
    assert_int_equal(rig_stats(b.r).tune_launches, 0);
    assert_int_equal(rig_stats(b.r).compiles, 0);
    b.options.again = true;
    bench_tune(&b);
    assert_true(b.tuning.launches > 0);
    assert_int_equal(rig_stats(b.r).tunings, 1);
    bench_close(&b);
}

static void a_wrong_variant_is_refused_with_its_place(void **state)
{
    bench b;
    bench_open(&b, state);
    bench_add(&b, "plain", bench_slow, 4);
    bench_add(&b, "wrong", wrong_text, 8); /* the fastest by far */
    bench_tune(&b);
    assert_int_equal(b.tuning.variant, 0);
    assert_int_equal(b.rows[1].outcome, KILN_TUNE_DIFFERS);
    assert_int_equal(b.rows[1].samples, 0);
    assert_string_equal(b.rows[1].reason,
                        "argument 1: element 0 is 0, the baseline gives 1; 16 of 16 elements are "
                        "off, the worst by 1");
    assert_int_equal(bench_picked(&b), 0);
    b.output.absolute = 1; /* it is all a matter of what is good enough */
    b.options.again = true;
    bench_tune(&b);
    assert_int_equal(b.tuning.variant, 1);
    bench_close(&b);
}

/* A variant that writes nothing must not pass by what the baseline left there. */
static void a_variant_that_writes_nothing_is_refused(void **state)
{
    bench b;
    bench_open(&b, state);
    bench_add(&b, "plain", bench_slow, 4);
    bench_add(&b, "idle", "kernel f x:floats y:floats\ny = x 2 * 1 +\n", 4);
    b.variants[1].launch.global[0] = ITEMS / 2;
    bench_tune(&b);
    assert_int_equal(b.rows[1].outcome, KILN_TUNE_DIFFERS);
    assert_non_null(strstr(b.rows[1].reason, "element 8 is "));
    bench_close(&b);
}

/* y += x: each launch finds y as it was, and so does the caller. */
static void what_is_read_and_written_is_put_back(void **state)
{
    bench b;
    float y[ITEMS];
    kiln_queue *queue = NULL;
    bench_open(&b, state);
    bench_add(&b, "plain", in_place_text, 4);
    bench_add(&b, "groups of 8", in_place_text, 8);
    b.output.is_input = true;
    bench_tune(&b);
    assert_int_equal(b.rows[1].outcome, KILN_TUNE_CHOSEN);
    RIG_OK(kiln_queue_create(b.r->device, &queue, &diag));
    RIG_OK(kiln_queue_read(queue, b.y, 0, y, sizeof(y), &diag));
    for (size_t i = 0; i < ITEMS; i++) {
        assert_true(y[i] == 1);
    }
    kiln_queue_destroy(queue);
    bench_close(&b);
}

static void what_does_not_build_or_run_is_left_out(void **state)
{
    bench b;
    bench_open(&b, state);
    bench_add(&b, "plain", bench_slow, 4);
    bench_add(&b, "broken", broken_text, 4);
    bench_add(&b, "misshapen", bench_quick, 5); /* 16 is not a multiple of 5 */
    bench_add(&b, "foreign", bench_quick, 4);
    bench_add(&b, "quick", bench_quick, 4);
    b.sources[3].language = KILN_LANG_CUDA;
    bench_tune(&b);
    assert_int_equal(b.tuning.variant, 4);
    assert_int_equal(b.rows[1].outcome, KILN_TUNE_FAILED);
    assert_int_equal(b.rows[1].status, KILN_E_COMPILE);
    assert_int_equal(b.rows[2].outcome, KILN_TUNE_FAILED);
    assert_non_null(strstr(b.rows[2].reason, "not a multiple"));
    assert_int_equal(b.rows[3].outcome, KILN_TUNE_PASSED_OVER);
    bench_close(&b);
}

static void the_baseline_must_work(void **state)
{
    bench b;
    kiln_diag diag = KILN_DIAG_INIT;
    bench_open(&b, state);
    bench_add(&b, "broken", broken_text, 4);
    bench_add(&b, "quick", bench_quick, 4);
    assert_int_equal(kiln_tune(b.r->device, &b.kernel, &b.options, &b.tuning, &diag),
                     KILN_E_COMPILE);
    assert_non_null(diag.log);
    assert_false(b.tuning.known);
    kiln_diag_clear(&diag);
    assert_int_equal(bench_build(&b, NULL), KILN_E_COMPILE);
    bench_close(&b);
}

/* --- what makes it stale ---------------------------------------------------------------------- */

static void tune_and_close(bench *b, void **state)
{
    bench_open(b, state);
    bench_add_usual(b);
    bench_tune(b);
    assert_int_equal(b->tuning.variant, 2);
    bench_close(b);
}

static void expect_nothing_known(bench *b)
{
    kiln_tuning found = {.struct_size = sizeof(found)};
    assert_int_equal(kiln_tuned_find(b->r->device, &b->kernel, &found, NULL), KILN_MISS);
    assert_int_equal(bench_picked(b), 0);
    bench_tune(b);
    assert_true(b->tuning.launches > 0);
    bench_close(b);
}

static void a_driver_change_makes_it_stale(void **state)
{
    bench b;
    tune_and_close(&b, state);
    (void)setenv("KILN_FAKE_DRIVER", "99.1", 1);
    bench_open(&b, state);
    bench_add_usual(&b);
    expect_nothing_known(&b);
    (void)setenv("KILN_FAKE_DEVICE", "Another Processor", 1);
    bench_open(&b, state);
    bench_add_usual(&b);
    expect_nothing_known(&b);
}

static void another_list_or_size_is_another_question(void **state)
{
    static const char other_text[] = "kernel f x:floats y:floats\ny = x 2 * 0 + 1 +\n";
    bench b;
    tune_and_close(&b, state);
    bench_open(&b, state);
    bench_add_usual(&b);
    b.sizes[0] = 600; /* up to 1024, as 1000 is */
    assert_int_equal(bench_picked(&b), 2);
    b.sizes[0] = 500;
    assert_int_equal(bench_picked(&b), 0);
    b.sizes[0] = 1000;
    b.kernel.size_count = 1;
    assert_int_equal(bench_picked(&b), 0);
    b.kernel.size_count = 2;
    b.kernel.name = "g";
    assert_int_equal(bench_picked(&b), 0);
    b.kernel.name = "f";
    b.variants[1].name = "other";
    assert_int_equal(bench_picked(&b), 0);
    b.variants[1].name = "quick";
    b.sources[0] = rig_source(other_text);
    assert_int_equal(bench_picked(&b), 0);
    b.sources[0] = rig_source(bench_slow);
    b.kernel.variant_count = 2;
    assert_int_equal(bench_picked(&b), 0);
    b.kernel.variant_count = 3;
    b.variants[2].launch.local[0] = 16;
    assert_int_equal(bench_picked(&b), 0);
    b.variants[2].launch.local[0] = 8;
    kiln_define define = {"ONE", "1"};
    b.sources[2].defines = &define;
    b.sources[2].define_count = 1;
    assert_int_equal(bench_picked(&b), 0);
    b.sources[2].define_count = 0;
    assert_int_equal(bench_picked(&b), 2);
    /* The same text somewhere else in memory is the same text. */
    char *copy = strdup(bench_quick);
    assert_non_null(copy);
    b.sources[2].text = copy;
    assert_int_equal(bench_picked(&b), 2);
    free(copy);
    assert_int_equal(rig_stats(b.r).tuned_stale, 0);
    bench_close(&b);
}

/* A size of the same bucket that the winner's groups do not divide. */
static void what_does_not_fit_the_shape_is_passed_over(void **state)
{
    bench b;
    tune_and_close(&b, state);
    bench_open(&b, state);
    bench_add_usual(&b);
    for (size_t i = 0; i < 3; i++) {
        b.variants[i].launch.global[0] = 12;
    }
    assert_int_equal(bench_picked(&b), 0);
    bench_close(&b);
}

/* A header that the winner includes is not in the key of the choice, but in the choice. */
static void a_changed_header_makes_it_stale(void **state)
{
    bench b;
    rig *r = *state;
    char *header = kt_at(r->dir, "one.fake");
    kt_file_write(header, "#define ONE 1\n", 14);
    char text[256];
    const char *dirs[] = {r->dir};
    (void)snprintf(text, sizeof(text), "#include \"one.fake\"\n%s", unrolled_text);
    for (int pass = 0; pass < 2; pass++) {
        bench_open(&b, state);
        bench_add(&b, "plain", bench_slow, 4);
        bench_add(&b, "included", text, 8);
        b.sources[1].include_dirs = dirs;
        b.sources[1].include_dir_count = 1;
        if (pass == 0) {
            bench_tune(&b);
            assert_int_equal(b.tuning.variant, 1);
            assert_int_equal(bench_picked(&b), 1);
            kt_file_write(header, "#define ONE 1.0\n", 16);
        } else {
            assert_int_equal(bench_picked(&b), 0);
            assert_int_equal(rig_stats(b.r).tuned_stale, 1);
            assert_int_equal(rig_stats(b.r).compiles, 0); /* the winner is not built for nothing */
            bench_tune(&b);
            assert_true(b.tuning.launches > 0);
            assert_int_equal(bench_picked(&b), 1);
        }
        bench_close(&b);
    }
}

static void a_variant_that_no_longer_builds_gives_way(void **state)
{
    bench b;
    tune_and_close(&b, state);
    bench_open(&b, state);
    bench_add_usual(&b);
    /* The choice stays, the programs go: the driver refuses what it compiled before. */
    kiln_tuning found = {.struct_size = sizeof(found)};
    assert_int_equal(kiln_tuned_find(b.r->device, &b.kernel, &found, NULL), KILN_OK);
    atomic_store(&b.r->fake->faults.calls[FAKE_LOAD], 0);
    b.r->fake->faults.rows[0] = (kn_fake_fault){FAKE_LOAD, "fail", 1};
    b.r->fake->faults.count = 1;
    assert_int_equal(bench_picked(&b), 0);
    assert_int_equal(rig_stats(b.r).tuned_stale, 1);
    bench_close(&b);
}

static void opting_out_is_strict(void **state)
{
    bench b;
    tune_and_close(&b, state);
    (void)setenv("KILN_UNTUNED", "1", 1);
    bench_open(&b, state);
    bench_add_usual(&b);
    kiln_tuning found = {.struct_size = sizeof(found)};
    assert_int_equal(kiln_tuned_find(b.r->device, &b.kernel, &found, NULL), KILN_MISS);
    assert_int_equal(bench_picked(&b), 0);
    assert_int_equal(rig_stats(b.r).tuned_hits, 0);
    assert_int_equal(rig_stats(b.r).hits_disk,
                     2); /* the baseline's two stages; no look at the choice */
    bench_close(&b);
    (void)setenv("KILN_UNTUNED", "maybe", 1);
    kiln_runtime_options options;
    assert_int_equal(kiln_runtime_options_init(&options, NULL), KILN_E_INVALID);
}

/* --- packs ------------------------------------------------------------------------------------ */

static void packs_carry_it(void **state)
{
    bench b;
    rig *r = *state;
    char *path = kt_at(r->dir, "a.kpack");
    kiln_pack_writer *writer = NULL;
    kiln_pack_copied copied = {.struct_size = sizeof(copied)};
    bench_open(&b, state);
    bench_add_usual(&b);
    bench_tune(&b);
    RIG_OK(kiln_pack_writer_create(path, NULL, &writer, &diag));
    RIG_OK(kiln_pack_writer_add_all(writer, r->cache, NULL, NULL, NULL, &copied, &diag));
    RIG_OK(kiln_pack_writer_finish(writer, NULL, &diag));
    kiln_pack_writer_destroy(writer);
    RIG_OK(kiln_cache_clear(r->cache,
                            &(kiln_prune_result){.struct_size = sizeof(kiln_prune_result)}, &diag));
    bench_close(&b);

    (void)setenv("KILN_PACKS", path, 1);
    bench_open(&b, state);
    bench_add_usual(&b);
    kiln_tuning found = {.struct_size = sizeof(found)};
    RIG_OK(kiln_tuned_find(r->device, &b.kernel, &found, &diag));
    assert_int_equal(found.variant, 2);
    assert_int_equal(found.origin, KILN_ORIGIN_PACK);
    assert_int_equal(bench_picked(&b), 2);
    bench_tune(&b);
    assert_int_equal(b.tuning.launches, 0);
    assert_int_equal(rig_calls(r, FAKE_LAUNCH), 0);
    assert_int_equal(rig_calls(r, FAKE_COMPILE), 0);
    bench_close(&b);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_fastest_is_chosen_and_kept),
        TEST(a_second_process_measures_nothing),
        TEST(a_wrong_variant_is_refused_with_its_place),
        TEST(a_variant_that_writes_nothing_is_refused),
        TEST(what_is_read_and_written_is_put_back),
        TEST(what_does_not_build_or_run_is_left_out),
        TEST(the_baseline_must_work),
        TEST(a_driver_change_makes_it_stale),
        TEST(another_list_or_size_is_another_question),
        TEST(what_does_not_fit_the_shape_is_passed_over),
        TEST(a_changed_header_makes_it_stale),
        TEST(a_variant_that_no_longer_builds_gives_way),
        TEST(opting_out_is_strict),
        TEST(packs_carry_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
