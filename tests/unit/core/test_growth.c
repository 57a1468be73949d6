/* Callers that were compiled with newer headers: every struct has grown by a wish that this library
 * knows nothing of. Lists of them lie further apart than ours. (What an older caller lacks is zero:
 * tests/unit/sized/test_sized.c.) */
#include "unit/tune/tune_bench.h"

#include <stdlib.h>
#include <string.h>

#include <kiln/unstable/background.h>
#include <kiln/unstable/compile.h>
#include <kiln/unstable/executor.h>
#include <kiln/unstable/tune.h>
#include <kiln/unstable/warm.h>
#include <kiln/unstable/watch.h>

#include "tune/tune.h"

#define NEWER(type)                                                                                \
    struct {                                                                                       \
        type now;                                                                                  \
        uint64_t wish;                                                                             \
    }
#define NEWER_OF(from)                                                                             \
    {                                                                                              \
        .now = (from), .wish = 0                                                                   \
    }
/* struct_size of the whole. */
#define GROW(it) ((it).now.struct_size = sizeof(it))

typedef NEWER(kiln_source) newer_source;

static void expect_newer(kiln_status status, kiln_diag *diag, const char *name)
{
    assert_int_equal(status, KILN_E_INVALID);
    assert_string_equal(diag->what, name);
    assert_non_null(strstr(diag->why, "newer than this library"));
    kiln_diag_clear(diag);
}

/* The second is the one that the device takes. */
static void two_sources(newer_source sources[2])
{
    memset(sources, 0, 2 * sizeof(sources[0]));
    sources[0].now = rig_source("not for this device");
    sources[0].now.language = KILN_LANG_GLSL;
    sources[1].now = rig_source(rig_saxpy);
    GROW(sources[0]);
    GROW(sources[1]);
}

static void programs_are_built_for_newer_callers(void **state)
{
    rig *r = *state;
    newer_source sources[2];
    NEWER(kiln_build_options) options = NEWER_OF((kiln_build_options){0});
    kiln_diag why = KILN_DIAG_INIT;
    kiln_program *program = NULL;
    kiln_device *device = NULL;
    rig_open(r, NULL);
    two_sources(sources);
    GROW(options);
    RIG_OK(kiln_program_build(r->device, &sources[0].now, 2, &options.now, &program, &diag));
    rig_launch(r, program, 8, 1);
    kiln_program_release(program);
    RIG_OK(kiln_runtime_select(r->runtime, &sources[0].now, 2, &device, &diag));
    assert_ptr_equal(device, r->device);

    options.wish = 1;
    expect_newer(kiln_program_build(r->device, &sources[0].now, 2, &options.now, &program, &why),
                 &why, "kiln_build_options");
    assert_null(program);
    sources[1].wish = 1;
    expect_newer(kiln_program_build(r->device, &sources[0].now, 2, NULL, &program, &why), &why,
                 "kiln_source");
    expect_newer(kiln_runtime_select(r->runtime, &sources[0].now, 2, &device, &why), &why,
                 "kiln_source");
    assert_null(device);
    assert_int_equal(rig_calls(r, FAKE_COMPILE), 1);
}

static void fallbacks_and_watches_of_newer_callers(void **state)
{
    rig *r = *state;
    newer_source sources[2];
    kiln_source slow = rig_source(rig_saxpy);
    NEWER(kiln_build_options) options = NEWER_OF((kiln_build_options){.background = true});
    kiln_diag why = KILN_DIAG_INIT;
    kiln_program *program = NULL;
    kiln_watch *watch = NULL;
    rig_open(r, NULL);
    two_sources(sources);
    GROW(options);
    options.now.fallback = &sources[0].now;
    options.now.fallback_count = 2;
    RIG_OK(kiln_program_build(r->device, &slow, 1, &options.now, &program, &diag));
    rig_launch(r, program, 8, 1);
    RIG_OK(kiln_program_wait(program, &diag));
    kiln_program_release(program);
    sources[0].now.name = "some.file";
    sources[0].now.language = rig_source(rig_saxpy).language;
    RIG_OK(kiln_watch_create(r->device, &sources[0].now, &options.now, &watch, &diag));
    kiln_watch_destroy(watch);

    sources[1].wish = 1;
    slow.name = "another";
    expect_newer(kiln_program_build(r->device, &slow, 1, &options.now, &program, &why), &why,
                 "kiln_source");
    options.wish = 1;
    expect_newer(kiln_watch_create(r->device, &sources[0].now, &options.now, &watch, &why), &why,
                 "kiln_build_options");
    sources[0].wish = 1;
    expect_newer(kiln_watch_create(r->device, &sources[0].now, NULL, &watch, &why), &why,
                 "kiln_source");
    expect_newer(
        kiln_compile(r->runtime, "fake:0", &sources[0].now, &(kiln_blob *){NULL}, NULL, &why), &why,
        "kiln_source");
}

static void warming_for_newer_callers(void **state)
{
    rig *r = *state;
    newer_source sources[2];
    NEWER(kiln_warm_options) options = NEWER_OF((kiln_warm_options){0});
    NEWER(kiln_warm_state) how = NEWER_OF((kiln_warm_state){0});
    kiln_diag why = KILN_DIAG_INIT;
    kiln_warm *warm = NULL;
    rig_open(r, NULL);
    two_sources(sources);
    GROW(options);
    GROW(how);
    how.wish = UINT64_MAX;
    const kiln_warm_item item = {&sources[0].now, 2};
    RIG_OK(kiln_warm_start(r->device, &item, 1, &options.now, &warm, &diag));
    kiln_warm_wait(warm);
    RIG_OK(kiln_warm_get_state(warm, &how.now, &diag));
    assert_int_equal(how.now.built, 1);
    assert_int_equal(how.now.failed, 0);
    assert_int_equal(how.now.struct_size, sizeof(how));
    assert_int_equal(how.wish, 0);
    kiln_warm_destroy(warm);

    sources[1].wish = 1;
    expect_newer(kiln_warm_start(r->device, &item, 1, NULL, &warm, &why), &why, "kiln_source");
    options.wish = 1;
    expect_newer(kiln_warm_start(r->device, &item, 1, &options.now, &warm, &why), &why,
                 "kiln_warm_options");
    assert_null(warm);
}

static void executors_of_newer_callers(void **state)
{
    rig *r = *state;
    NEWER(kiln_executor_options) options = NEWER_OF((kiln_executor_options){0});
    NEWER(kiln_executor_stats) stats = NEWER_OF((kiln_executor_stats){0});
    NEWER(kiln_work) work = NEWER_OF((kiln_work){0});
    kiln_diag why = KILN_DIAG_INIT;
    kiln_executor *executor = NULL;
    kiln_ticket *ticket = NULL;
    float a = 2;
    float y[8] = {0};
    rig_open(r, NULL);
    kiln_source source = rig_source(rig_saxpy);
    kiln_program *program = rig_build(r, &source);
    const kiln_work_arg args[] = {
        {.kind = KILN_ARG_VALUE, .value = &a, .size = sizeof(a)},
        {.kind = KILN_ARG_BUFFER, .size = sizeof(y), .input = y},
        {.kind = KILN_ARG_BUFFER, .size = sizeof(y), .input = y, .output = y}};
    work.now = (kiln_work){.program = program,
                           .entry = "saxpy",
                           .dims = 1,
                           .global = {8},
                           .local = {1},
                           .args = args,
                           .arg_count = 3};
    GROW(options);
    GROW(stats);
    GROW(work);
    stats.wish = UINT64_MAX;
    RIG_OK(kiln_executor_create(r->device, &options.now, &executor, &diag));
    RIG_OK(kiln_executor_submit(executor, &work.now, &ticket, &diag));
    RIG_OK(kiln_ticket_wait(ticket, &diag));
    kiln_ticket_release(ticket);
    RIG_OK(kiln_executor_get_stats(executor, &stats.now, &diag));
    assert_int_equal(stats.now.completed, 1);
    assert_int_equal(stats.now.struct_size, sizeof(stats));
    assert_int_equal(stats.wish, 0);
    work.wish = 1;
    expect_newer(kiln_executor_submit(executor, &work.now, &ticket, &why), &why, "kiln_work");
    kiln_executor_destroy(executor);
    options.wish = 1;
    expect_newer(kiln_executor_create(r->device, &options.now, &executor, &why), &why,
                 "kiln_executor_options");
    kiln_program_release(program);
}

/* A launch that grew makes the variants that it is in grow with it. */
static void tuning_for_newer_callers(void **state)
{
    bench b;
    struct {
        kiln_variant now;
        uint64_t wish;
    } variants[3];
    newer_source source;
    NEWER(kiln_kernel) kernel;
    NEWER(kiln_tune_options) options;
    kiln_diag why = KILN_DIAG_INIT;
    bench_open(&b, state);
    bench_add_usual(&b);
    memset(&source, 0, sizeof(source));
    memset(&kernel, 0, sizeof(kernel));
    memset(&options, 0, sizeof(options));
    memset(variants, 0, sizeof(variants));
    for (size_t i = 0; i < 3; i++) {
        variants[i].now = b.variants[i];
        variants[i].now.struct_size = sizeof(variants[i]);
        variants[i].now.launch.struct_size = sizeof(kiln_launch) + sizeof(uint64_t);
    }
    source.now = *b.variants[2].source;
    GROW(source);
    variants[2].now.source = &source.now;
    kernel.now = b.kernel;
    kernel.now.variants = &variants[0].now;
    GROW(kernel);
    options.now = b.options;
    GROW(options);
    RIG_OK(kiln_tune(b.r->device, &kernel.now, &options.now, &b.tuning, &diag));
    assert_int_equal(b.tuning.variant, 2);
    bench_tune(&b); /* this version's caller finds what that one measured */
    assert_int_equal(b.tuning.variant, 2);
    assert_int_equal(b.tuning.launches, 0);

    options.wish = 1;
    expect_newer(kiln_tune(b.r->device, &kernel.now, &options.now, &b.tuning, &why), &why,
                 "kiln_tune_options");
    kernel.wish = 1;
    expect_newer(kiln_tuned_find(b.r->device, &kernel.now, &b.tuning, &why), &why, "kiln_kernel");
    kernel.wish = 0;
    source.wish = 1;
    expect_newer(kiln_tuned_find(b.r->device, &kernel.now, &b.tuning, &why), &why, "kiln_source");
    source.wish = 0;
    variants[1].wish = 1;
    expect_newer(kiln_tuned_find(b.r->device, &kernel.now, &b.tuning, &why), &why, "kiln_variant");
    variants[1].wish = 0;
    variants[1].now.launch.struct_size += 8; /* reaches into the next variant */
    assert_int_equal(kiln_tuned_find(b.r->device, &kernel.now, &b.tuning, &why), KILN_E_INVALID);
    kiln_diag_clear(&why);
    bench_close(&b);
}

/* --- options that the library fills ----------------------------------------------------------- */

static void runtime_options_are_filled_as_far_as_they_reach(void **state)
{
    rig *r = *state;
    NEWER(kiln_runtime_options) newer;
    kiln_diag why = KILN_DIAG_INIT;
    kiln_runtime *runtime = NULL;
    memset(&newer, 0xee, sizeof(newer));
    RIG_OK(kiln_runtime_options_init(&newer.now, &diag));
    assert_int_equal(newer.wish, UINT64_C(0xeeeeeeeeeeeeeeee)); /* left alone */
    RIG_OK(kiln_runtime_options_init_sized(&newer.now, sizeof(newer), &diag));
    assert_int_equal(newer.wish, 0);
    assert_int_equal(newer.now.struct_size, sizeof(newer));
    rig_open(r, NULL);
    newer.now.cache = r->cache;
    newer.now.backend = "fake";
    RIG_OK(kiln_runtime_create(&newer.now, &runtime, &diag));
    kiln_runtime_destroy(runtime);
    newer.wish = 1;
    expect_newer(kiln_runtime_create(&newer.now, &runtime, &why), &why, "kiln_runtime_options");
    assert_int_equal(kiln_runtime_options_init_sized(&newer.now, 8, &why), KILN_E_INVALID);
    assert_int_equal(newer.wish, 1);
    kiln_diag_clear(&why);
}

static void cache_options_are_filled_as_far_as_they_reach(void **state)
{
    rig *r = *state;
    NEWER(kiln_cache_options) newer;
    kiln_diag why = KILN_DIAG_INIT;
    kiln_cache *cache = NULL;
    memset(&newer, 0xee, sizeof(newer));
    RIG_OK(kiln_cache_options_init(&newer.now, &diag));
    assert_int_equal(newer.wish, UINT64_C(0xeeeeeeeeeeeeeeee));
    RIG_OK(kiln_cache_options_init_sized(&newer.now, sizeof(newer), &diag));
    assert_int_equal(newer.wish, 0);
    newer.now.root = r->dir;
    newer.now.flags = KILN_CACHE_NO_DISK;
    RIG_OK(kiln_cache_create(&newer.now, &cache, &diag));
    kiln_cache_destroy(cache);
    newer.wish = 1;
    expect_newer(kiln_cache_create(&newer.now, &cache, &why), &why, "kiln_cache_options");
    assert_int_equal(kiln_cache_options_init_sized(&newer.now, 8, &why), KILN_E_INVALID);
    assert_int_equal(newer.wish, 1);
    kiln_diag_clear(&why);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(programs_are_built_for_newer_callers),
        TEST(fallbacks_and_watches_of_newer_callers),
        TEST(warming_for_newer_callers),
        TEST(executors_of_newer_callers),
        TEST(tuning_for_newer_callers),
        TEST(runtime_options_are_filled_as_far_as_they_reach),
        TEST(cache_options_are_filled_as_far_as_they_reach),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
