/* Structs that the library fills, for callers who were compiled with newer headers (nothing is
 * written past what they have, and what this library does not know is zero) and for callers who set
 * no size (nothing is done). Older callers: tests/unit/sized/test_sized.c. */
#include "unit/tune/tune_bench.h"

#include <stdlib.h>
#include <string.h>

#include <kiln/unstable/admin.h>
#include <kiln/unstable/compile.h>
#include <kiln/unstable/explain.h>
#include <kiln/unstable/pack.h>
#include <kiln/unstable/probe.h>
#include <kiln/unstable/tune.h>

#define NEWER(type)                                                                                \
    struct {                                                                                       \
        type now;                                                                                  \
        uint64_t wish;                                                                             \
    }
/* As memory is found: only the size is set. */
#define GROW(it) (memset(&(it), 0xee, sizeof(it)), (it).now.struct_size = sizeof(it))

#define EXPECT_FILLED(it)                                                                          \
    do {                                                                                           \
        assert_int_equal((it).wish, 0);                                                            \
        assert_int_equal((it).now.struct_size, sizeof(it));                                        \
    } while (0)

static uint64_t entries_of(rig *r)
{
    kiln_verify_result found = {.struct_size = sizeof(found)};
    RIG_OK(kiln_cache_verify(r->cache, false, &found, &diag));
    return found.entries_good;
}

static void fill_cache(rig *r)
{
    rig_open(r, NULL);
    kiln_source source = rig_source(rig_saxpy);
    kiln_program_release(rig_build(r, &source));
}

static void results_of_looking_at_a_cache(void **state)
{
    rig *r = *state;
    NEWER(kiln_verify_result) verified;
    NEWER(kiln_prune_result) pruned;
    NEWER(kiln_prune_options) options = {.wish = 0};
    fill_cache(r);
    GROW(verified);
    RIG_OK(kiln_cache_verify(r->cache, false, &verified.now, &diag));
    EXPECT_FILLED(verified);
    const uint64_t entries = verified.now.entries_good;
    assert_true(entries > 0);

    options.now = (kiln_prune_options){.struct_size = sizeof(options), .max_bytes = UINT64_MAX};
    GROW(pruned);
    RIG_OK(kiln_cache_prune(r->cache, &options.now, &pruned.now, &diag));
    EXPECT_FILLED(pruned);
    assert_int_equal(pruned.now.entries_seen, entries);
    assert_int_equal(pruned.now.entries_removed, 0);

    options.wish = 1;
    kiln_diag why = KILN_DIAG_INIT;
    assert_int_equal(kiln_cache_prune(r->cache, &options.now, &pruned.now, &why), KILN_E_INVALID);
    assert_string_equal(why.what, "kiln_prune_options");
    kiln_diag_clear(&why);

    pruned.now.struct_size = 0;
    assert_int_equal(kiln_cache_clear(r->cache, &pruned.now, &why), KILN_E_INVALID);
    assert_string_equal(why.what, "kiln_prune_result");
    kiln_diag_clear(&why);
    assert_int_equal(entries_of(r), entries); /* looked at before anything is removed */
    GROW(pruned);
    RIG_OK(kiln_cache_clear(r->cache, &pruned.now, &diag));
    EXPECT_FILLED(pruned);
    assert_int_equal(pruned.now.entries_removed, entries);
}

static void counters_of_other_versions(void **state)
{
    rig *r = *state;
    uint64_t more[KILN_COUNTERS + 10], fewer[KILN_COUNTER_MISSES + 2];
    fill_cache(r);
    memset(more, 0xee, sizeof(more));
    memset(fewer, 0xee, sizeof(fewer));
    RIG_OK(kiln_cache_get_totals(r->cache, more, KILN_COUNTERS + 10, &diag));
    RIG_OK(kiln_cache_get_totals(r->cache, fewer, KILN_COUNTER_MISSES + 1, &diag));
    assert_true(more[KILN_COUNTER_COMPILES] > 0);
    assert_int_equal(more[KILN_COUNTER_COMPILES],
                     kiln_cache_counter(r->cache, KILN_COUNTER_COMPILES));
    assert_int_equal(fewer[KILN_COUNTER_MISSES], more[KILN_COUNTER_MISSES]);
    assert_int_equal(fewer[KILN_COUNTER_MISSES + 1], UINT64_C(0xeeeeeeeeeeeeeeee));
    for (size_t i = KILN_COUNTERS; i < KILN_COUNTERS + 10; i++) {
        assert_int_equal(more[i], 0);
        assert_int_equal(kiln_cache_counter(r->cache, (uint32_t)i), 0);
        assert_null(kiln_counter_name((uint32_t)i));
        assert_null(kiln_counter_unit((uint32_t)i));
        assert_null(kiln_counter_text((uint32_t)i));
    }
    assert_string_equal(kiln_counter_name(KILN_COUNTER_COMPILE_NS), "compile_ns");
    assert_string_equal(kiln_counter_unit(KILN_COUNTER_COMPILE_NS), "ns");
    assert_string_equal(kiln_counter_text(KILN_COUNTER_HITS_DISK), "hits on disk");
}

static void builds_and_probes(void **state)
{
    rig *r = *state;
    NEWER(kiln_build_info) info;
    NEWER(kiln_probe_report) report;
    kiln_blob *blob = NULL;
    rig_open(r, NULL);
    kiln_source source = rig_source(rig_saxpy);
    GROW(info);
    RIG_OK(kiln_compile_measured(r->runtime, "fake:0", &source, &blob, &info.now, &diag));
    EXPECT_FILLED(info);
    assert_int_equal(info.now.origin, KILN_ORIGIN_COMPILED);
    assert_true(info.now.compiles > 0);
    kiln_blob_release(blob);
    const uint64_t compiles = rig_calls(r, FAKE_COMPILE);

    GROW(report);
    RIG_OK(kiln_backend_probe("fake", &report.now, &diag));
    EXPECT_FILLED(report);
    assert_int_equal(report.now.outcome, KILN_PROBE_READY);

    source = rig_source("another text");
    info.now.struct_size = 8;
    assert_int_equal(kiln_compile_measured(r->runtime, "fake:0", &source, &blob, &info.now, NULL),
                     KILN_E_INVALID);
    assert_null(blob);
    assert_int_equal(rig_calls(r, FAKE_COMPILE), compiles);
    report.now.struct_size = 0;
    assert_int_equal(kiln_backend_probe("fake", &report.now, NULL), KILN_E_INVALID);
}

static void what_is_written_and_extracted(void **state)
{
    rig *r = *state;
    NEWER(kiln_pack_copied) copied;
    NEWER(kiln_pack_info) info;
    NEWER(kiln_verify_result) verified;
    kiln_pack_writer *writer = NULL;
    kiln_pack *pack = NULL;
    fill_cache(r);
    char *path = kt_at(r->dir, "a.kpack");
    RIG_OK(kiln_pack_writer_create(path, NULL, &writer, &diag));
    GROW(copied);
    RIG_OK(kiln_pack_writer_add_all(writer, r->cache, NULL, NULL, NULL, &copied.now, &diag));
    EXPECT_FILLED(copied);
    assert_true(copied.now.added > 0);
    const uint64_t added = copied.now.added;
    info.now.struct_size = 0;
    assert_int_equal(kiln_pack_writer_finish(writer, &info.now, NULL), KILN_E_INVALID);
    GROW(info);
    RIG_OK(kiln_pack_writer_finish(writer, &info.now, &diag)); /* it was not finished */
    EXPECT_FILLED(info);
    assert_int_equal(info.now.entries, added);
    kiln_pack_writer_destroy(writer);

    RIG_OK(kiln_pack_open(path, &pack, &diag));
    assert_int_equal(kiln_pack_get_info(pack)->struct_size, sizeof(kiln_pack_info));
    assert_int_equal(kiln_pack_get_info(pack)->entries, added);
    GROW(verified);
    RIG_OK(kiln_pack_verify(pack, &verified.now, &diag));
    EXPECT_FILLED(verified);
    assert_int_equal(verified.now.entries_good, added);
    GROW(copied);
    RIG_OK(kiln_pack_extract(pack, r->cache, NULL, &copied.now, &diag));
    EXPECT_FILLED(copied);
    assert_int_equal(copied.now.present, added);
    copied.now.struct_size = 1;
    assert_int_equal(kiln_pack_extract(pack, r->cache, NULL, &copied.now, NULL), KILN_E_INVALID);
    kiln_pack_close(pack);
}

static void measurements_and_their_rows(void **state)
{
    bench b;
    NEWER(kiln_tune_row) rows[3];
    NEWER(kiln_tuning) tuning;
    kiln_program *program = NULL;
    kiln_diag why = KILN_DIAG_INIT;
    bench_open(&b, state);
    bench_add_usual(&b);
    for (size_t i = 0; i < 3; i++) {
        GROW(rows[i]);
    }
    GROW(tuning);
    b.options.rows = &rows[0].now;
    RIG_OK(kiln_tune(b.r->device, &b.kernel, &b.options, &tuning.now, &diag));
    EXPECT_FILLED(tuning);
    assert_true(tuning.now.known);
    for (size_t i = 0; i < 3; i++) {
        EXPECT_FILLED(rows[i]);
        assert_true(rows[i].now.outcome ==
                    (i == tuning.now.variant ? KILN_TUNE_CHOSEN : rows[i].now.outcome));
        assert_true(rows[i].now.samples > 0);
    }
    GROW(tuning);
    RIG_OK(kiln_tuned_find(b.r->device, &b.kernel, &tuning.now, &diag));
    EXPECT_FILLED(tuning);
    GROW(tuning);
    RIG_OK(kiln_tuned_build(b.r->device, &b.kernel, NULL, &program, &tuning.now, &diag));
    EXPECT_FILLED(tuning);
    kiln_program_release(program);

    rows[1].now.struct_size = sizeof(kiln_tune_row);
    assert_int_equal(kiln_tune(b.r->device, &b.kernel, &b.options, &tuning.now, &why),
                     KILN_E_INVALID);
    assert_string_equal(why.what, "kiln_tune_row");
    kiln_diag_clear(&why);
    tuning.now.struct_size = 0;
    program = NULL;
    assert_int_equal(kiln_tuned_build(b.r->device, &b.kernel, NULL, &program, &tuning.now, &why),
                     KILN_E_INVALID);
    assert_null(program);
    kiln_diag_clear(&why);
    bench_close(&b);
}

static kiln_status take_explanation(void *user, const kiln_explanation *explanation)
{
    assert_int_equal(explanation->struct_size, sizeof(kiln_explanation));
    for (size_t i = 0; i < explanation->difference_count; i++) {
        assert_int_equal(explanation->differences[i]->struct_size, sizeof(kiln_difference));
        ++*(int *)user;
    }
    return KILN_OK;
}

static kiln_status take_entry(void *user, const kiln_entry_info *info)
{
    assert_int_equal(info->struct_size, sizeof(kiln_entry_info));
    ++*(int *)user;
    return KILN_OK;
}

static void what_the_library_owns_says_its_size(void **state)
{
    rig *r = *state;
    const kiln_param *const *params = NULL;
    size_t count = 0;
    int told = 0;
    rig_open(r, NULL);
    kiln_source source = rig_source(rig_saxpy);
    kiln_program *program = rig_build(r, &source);
    assert_int_equal(kiln_program_get_info(program)->struct_size, sizeof(kiln_build_info));
    assert_int_equal(kiln_device_get_info(r->device)->struct_size, sizeof(kiln_device_info));
    assert_true(kiln_runtime_report_count(r->runtime) > 0);
    assert_int_equal(kiln_runtime_get_report(r->runtime, 0)->struct_size,
                     sizeof(kiln_probe_report));
    RIG_OK(kiln_program_get_params(program, "saxpy", &params, &count, &diag));
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(params[i]->struct_size, sizeof(kiln_param));
        assert_true(params[i]->kind != KILN_ARG_UNKNOWN);
    }
    kiln_program_release(program);
    RIG_OK(kiln_cache_walk(r->cache, NULL, take_entry, &told, &diag));
    assert_true(told > 0);
    const char *const option = "-DX=1";
    source.options = &option;
    source.option_count = 1;
    told = 0;
    RIG_OK(kiln_explain(r->runtime, "fake:0", &source, take_explanation, &told, &diag));
    assert_true(told > 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(results_of_looking_at_a_cache),
        TEST(counters_of_other_versions),
        TEST(builds_and_probes),
        TEST(what_is_written_and_extracted),
        TEST(measurements_and_their_rows),
        TEST(what_the_library_owns_says_its_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
