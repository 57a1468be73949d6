/* Building: what is compiled when, what is shared, what is kept. Compile counts are the oracle. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kiln/unstable/background.h>
#include <kiln/unstable/compile.h>
#include <kiln/unstable/names.h>
#include <kiln/unstable/probe.h>
#include <kiln/unstable/reflect.h>
#include <kiln/unstable/warm.h>

#include "conformance/suite.h"
#include "support/counters.h"

void devices_are_described(suite *s)
{
    assert_true(kiln_runtime_device_count(s->runtime) > 0);
    for (size_t i = 0; i < kiln_runtime_device_count(s->runtime); i++) {
        const kiln_device_info *info = kiln_device_get_info(kiln_runtime_device(s->runtime, i));
        assert_string_equal(info->backend, s->backend);
        assert_true(info->name[0] != '\0');
        assert_true(info->target[0] != '\0');
        assert_true(strspn(info->target, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                         "0123456789._-") == strlen(info->target));
        assert_true(info->max_group_size > 0);
        assert_true(info->max_buffer_bytes > 0);
        assert_string_not_equal(kiln_device_class_name(info->device_class), "unknown");
    }
    bool reported = false;
    for (size_t i = 0; i < kiln_runtime_report_count(s->runtime); i++) {
        const kiln_probe_report *report = kiln_runtime_get_report(s->runtime, i);
        if (strcmp(report->backend, s->backend) == 0) {
            reported = true;
            assert_int_equal(report->outcome, KILN_PROBE_READY);
        }
    }
    assert_true(reported);
    assert_non_null(strstr(kiln_runtime_summary(s->runtime), s->backend));
}

void probing_here_and_in_a_child_agree(suite *s)
{
    kiln_probe_report here = {.struct_size = sizeof(here)};
    kiln_probe_report child = {.struct_size = sizeof(child)};
    OK(kiln_backend_probe(s->backend, &here, &diag));
    OK(kiln_backend_probe_isolated(s->backend, 30000, &child, &diag));
    assert_int_equal(here.outcome, KILN_PROBE_READY);
    assert_int_equal(child.outcome, KILN_PROBE_READY);
    if (here.device_count != child.device_count) {
        fail_msg("%u devices here (%s), %u in a child (%s)", here.device_count, here.why,
                 child.device_count, child.why);
    }
    assert_string_equal(here.version, child.version);
}

/* A new runtime on a cache that another one filled stands for a second process. */
void a_second_process_compiles_nothing(suite *s)
{
    suite_fresh first;
    suite_fresh second;
    kt_counters stats;
    suite_open(s, "second", 0, &first);
    kiln_program *program = suite_build(first.device, "basics", NULL, 0, NULL);
    const kiln_build_info *info = kiln_program_get_info(program);
    char *log = strdup(info->log);
    kiln_key key = info->key;
    assert_int_equal(info->origin, KILN_ORIGIN_COMPILED);
    assert_int_equal(info->compiles, info->stage_count);
    assert_true(info->stage_count > 0);
    assert_true(info->compile_ns > 0 && info->total_ns >= info->compile_ns);
    suite_launch(first.device, program);
    kiln_program_release(program);
    suite_close(&first);

    suite_open(s, "second", 0, &second);
    program = suite_build(second.device, "basics", NULL, 0, NULL);
    info = kiln_program_get_info(program);
    assert_int_equal(info->origin, KILN_ORIGIN_DISK);
    assert_int_equal(info->compiles, 0);
    assert_memory_equal(&info->key, &key, sizeof(key));
    assert_string_equal(info->log, log);
    kt_counters_own(second.cache, &stats);
    assert_int_equal(stats.compiles, 0);
    assert_true(stats.hits_disk >= info->stage_count);
    kiln_program_release(program);
    suite_close(&second);
    free(log);
}

void equal_builds_share_a_program(suite *s)
{
    kiln_program *again = suite_build(s->device, "basics", NULL, 0, NULL);
    assert_ptr_equal(again, s->basics);
    kiln_program_release(again);
}

void a_released_program_comes_back_from_memory(suite *s)
{
    suite_fresh fresh;
    suite_open(s, "released", 0, &fresh);
    kiln_program *program = suite_build(fresh.device, "basics", NULL, 0, NULL);
    suite_launch(fresh.device, program);
    kiln_program_release(program);
    suite_restart(s, &fresh);
    program = suite_build(fresh.device, "basics", NULL, 0, NULL);
    assert_int_equal(kiln_program_get_info(program)->origin, KILN_ORIGIN_MEMORY);
    assert_int_equal(kiln_program_get_info(program)->compiles, 0);
    kiln_program_release(program);
    suite_close(&fresh);
}

void devices_share_no_program(suite *s)
{
    if (kiln_runtime_device_count(s->runtime) < 2) {
        print_message("one device only: nothing to compare\n");
        return;
    }
    kiln_program *other = suite_build(kiln_runtime_device(s->runtime, 1), "basics", NULL, 0, NULL);
    assert_ptr_not_equal(other, s->basics);
    kiln_program_release(other);
}

/* A directory with scale.inc in it. */
static char *write_header(suite *s, const char *text)
{
    char *path = kt_at(s->dir, "scale.inc");
    kt_file_write(path, text, strlen(text));
    return s->dir;
}

void defines_change_the_program(suite *s)
{
    const char *dir = write_header(s, "#define SCALE 1\n");
    kiln_define seven = {"VALUE", "7"};
    kiln_define eight = {"VALUE", "8"};
    kiln_program *first = suite_build(s->device, "value", &seven, 1, &dir);
    kiln_program *second = suite_build(s->device, "value", &eight, 1, &dir);
    assert_ptr_not_equal(first, second);
    assert_int_equal(suite_value(s->device, first), 7);
    assert_int_equal(suite_value(s->device, second), 8);
    kiln_program_release(first);
    kiln_program_release(second);
}

void headers_change_the_program(suite *s)
{
    suite_fresh fresh;
    kiln_define one = {"VALUE", "1"};
    suite_open(s, "headers", 0, &fresh);
    const char *dir = write_header(s, "#define SCALE 3\n");
    kiln_program *first = suite_build(fresh.device, "value", &one, 1, &dir);
    assert_int_equal(suite_value(fresh.device, first), 3);
    kiln_key before = kiln_program_get_info(first)->key;
    kiln_program_release(first);

    (void)write_header(s, "#define SCALE 5\n");
    kiln_program *second = suite_build(fresh.device, "value", &one, 1, &dir);
    assert_int_equal(suite_value(fresh.device, second), 5);
    assert_memory_not_equal(&before, &kiln_program_get_info(second)->key, sizeof(before));
    kiln_program_release(second);

    /* The cache is asked, not the program: a capture may still hold the first one, and then that
     * one, which was compiled, is shared. */
    kt_counters made;
    kt_counters now;
    kt_counters_own(fresh.cache, &made);
    (void)write_header(s, "#define SCALE 3\n");
    kiln_program *third = suite_build(fresh.device, "value", &one, 1, &dir);
    kt_counters_own(fresh.cache, &now);
    assert_int_equal(now.compiles, made.compiles);
    assert_memory_equal(&before, &kiln_program_get_info(third)->key, sizeof(before));
    assert_int_equal(suite_value(fresh.device, third), 3);
    kiln_program_release(third);
    suite_close(&fresh);
}

void a_broken_kernel_leaves_a_log_and_nothing_else(suite *s)
{
    suite_fresh fresh;
    suite_sources sources;
    kiln_program *program = NULL;
    kiln_diag why = KILN_DIAG_INIT;
    suite_open(s, "broken", 0, &fresh);
    suite_load("broken", &sources);
    for (int round = 0; round < 2; round++) {
        kiln_status status =
            kiln_program_build(fresh.device, sources.sources, sources.count, NULL, &program, &why);
        assert_int_equal(status, KILN_E_COMPILE);
        assert_int_equal(why.status, KILN_E_COMPILE);
        assert_null(program);
        assert_non_null(why.log);
        assert_non_null(strstr(why.log, "this_is_not_declared"));
        kiln_diag_clear(&why);
    }
    const char *target = kiln_device_get_info(fresh.device)->target;
    assert_int_equal(suite_entries(fresh.cache, target), 0);
    suite_unload(&sources);
    suite_close(&fresh);
}

void cache_only_never_compiles(suite *s)
{
    suite_fresh fresh;
    suite_sources sources;
    kiln_program *program = NULL;
    kiln_build_options options = {.struct_size = sizeof(options), .cache_only = true};
    suite_open(s, "only", 0, &fresh);
    suite_load("basics", &sources);
    EXPECT(KILN_MISS, kiln_program_build(fresh.device, sources.sources, sources.count, &options,
                                         &program, &diag));
    kt_counters stats;
    kt_counters_own(fresh.cache, &stats);
    assert_int_equal(stats.compiles, 0);
    program = suite_build(fresh.device, "basics", NULL, 0, NULL);
    suite_launch(fresh.device, program);
    kiln_program_release(program);
    suite_restart(s, &fresh);
    OK(kiln_program_build(fresh.device, sources.sources, sources.count, &options, &program, &diag));
    assert_int_equal(kiln_program_get_info(program)->compiles, 0);
    kiln_program_release(program);
    suite_unload(&sources);
    suite_close(&fresh);
}

void without_a_cache_all_works(suite *s)
{
    suite_fresh fresh;
    const char *dir = write_header(s, "#define SCALE 2\n");
    kiln_define four = {"VALUE", "4"};
    suite_open(s, "none", KILN_CACHE_DISABLED, &fresh);
    for (int round = 0; round < 2; round++) {
        kiln_program *program = suite_build(fresh.device, "value", &four, 1, &dir);
        assert_int_equal(kiln_program_get_info(program)->origin, KILN_ORIGIN_COMPILED);
        assert_int_equal(suite_value(fresh.device, program), 8);
        kiln_program_release(program);
    }
    suite_close(&fresh);
}

void compiling_by_name_fills_the_same_cache(suite *s)
{
    suite_fresh fresh;
    suite_sources sources;
    kiln_blob *blob = NULL;
    kiln_origin origin = KILN_ORIGIN_NONE;
    char target[64];
    bool compiled = false;
    suite_open(s, "named", 0, &fresh);
    suite_load("basics", &sources);
    (void)snprintf(target, sizeof(target), "%s:%u", s->backend,
                   kiln_device_get_info(fresh.device)->index);
    for (size_t i = 0; i < sources.count && !compiled; i++) {
        kiln_status status =
            kiln_compile(fresh.runtime, target, &sources.sources[i], &blob, &origin, NULL);
        compiled = status == KILN_OK;
        assert_true(compiled || status == KILN_E_UNSUPPORTED);
    }
    assert_true(compiled);
    assert_int_equal(origin, KILN_ORIGIN_COMPILED);
    assert_true(kiln_blob_size(blob) > 0);
    kiln_blob_release(blob);
    kiln_program *program = suite_build(fresh.device, "basics", NULL, 0, NULL);
    assert_int_equal(kiln_program_get_info(program)->compiles, 0);
    kiln_program_release(program);
    REFUSED(
        kiln_compile(fresh.runtime, "no-such-backend", &sources.sources[0], &blob, &origin, &diag));
    suite_unload(&sources);
    suite_close(&fresh);
}

typedef struct heard {
    int starts;
    char what[256];
} heard;

static void hear(void *user, const char *what, double seconds)
{
    heard *told = (heard *)user;
    if (seconds == 0.0) {
        told->starts++;
        (void)snprintf(told->what, sizeof(told->what), "%s", what);
    }
}

void compiles_are_announced(suite *s)
{
    suite_fresh fresh;
    suite_sources sources;
    kiln_program *program = NULL;
    heard told = {0, ""};
    kiln_build_options options = {.struct_size = sizeof(options), .progress = hear, .user = &told};
    suite_open(s, "announced", 0, &fresh);
    suite_load("basics", &sources);
    OK(kiln_program_build(fresh.device, sources.sources, sources.count, &options, &program, &diag));
    assert_int_equal(told.starts, (int)kiln_program_get_info(program)->stage_count);
    assert_non_null(strstr(told.what, "basics"));
    suite_launch(fresh.device, program);
    kiln_program_release(program);
    suite_restart(s, &fresh);
    OK(kiln_program_build(fresh.device, sources.sources, sources.count, &options, &program, &diag));
    assert_int_equal(told.starts, (int)kiln_program_get_info(program)->stage_count);
    assert_int_equal(kiln_program_get_info(program)->compiles, 0);
    kiln_program_release(program);
    suite_unload(&sources);
    suite_close(&fresh);
}

void the_program_tells_its_entries(suite *s)
{
    const kiln_param *const *params = NULL;
    size_t count = 0;
    bool found = false;
    const char *saxpy = suite_entry(s->device, "saxpy");
    for (size_t i = 0; i < kiln_program_entry_count(s->basics); i++) {
        found = found || strcmp(kiln_program_entry(s->basics, i), saxpy) == 0;
    }
    assert_true(found);
    assert_null(kiln_program_entry(s->basics, kiln_program_entry_count(s->basics)));
    OK(kiln_program_get_params(s->basics, saxpy, &params, &count, &diag));
    if (!suite_has_main(s->device)) { /* GLSL does not say how buffers and values interleave */
        assert_int_equal(count, 3);
        assert_int_equal(params[0]->kind, KILN_ARG_VALUE);
        assert_int_equal(params[0]->size, 4);
        assert_int_equal(params[1]->kind, KILN_ARG_BUFFER);
        assert_int_equal(params[2]->kind, KILN_ARG_BUFFER);
    }
    kiln_diag why = KILN_DIAG_INIT;
    assert_int_equal(kiln_program_get_params(s->basics, "no_such", &params, &count, &why),
                     KILN_MISS);
    assert_non_null(strstr(why.why, saxpy));
    kiln_diag_clear(&why);
}

void sources_in_no_language_are_refused(suite *s)
{
    kiln_program *program = NULL;
    kiln_source source = KILN_SOURCE_INIT;
    EXPECT(KILN_E_UNSUPPORTED, kiln_program_build(s->device, &source, 1, NULL, &program, &diag));
    EXPECT(KILN_E_UNSUPPORTED, kiln_program_build(s->device, NULL, 0, NULL, &program, &diag));
    assert_null(program);
}

/* Scripted: only the fake driver refuses on request. Real ones are driven by their own tests. */
void a_refused_binary_is_made_again(suite *s)
{
    suite_fresh fresh;
    kt_counters stats;
    if (strcmp(s->backend, "fake") != 0) {
        print_message("only the fake backend can be told to refuse\n");
        return;
    }
    suite_open(s, "refused", 0, &fresh);
    kiln_program_release(suite_build(fresh.device, "basics", NULL, 0, NULL));
    suite_close(&fresh);
    assert_int_equal(setenv("KILN_FAKE_FAULTS", "load=reject@1", 1), 0);
    suite_open(s, "refused", 0, &fresh);
    (void)unsetenv("KILN_FAKE_FAULTS");
    kiln_program *program = suite_build(fresh.device, "basics", NULL, 0, NULL);
    assert_int_equal(kiln_program_get_info(program)->compiles, 1);
    kt_counters_own(fresh.cache, &stats);
    assert_int_equal(stats.rejected, 1);
    kiln_program_release(program);
    suite_close(&fresh);
    suite_open(s, "refused", 0, &fresh);
    program = suite_build(fresh.device, "basics", NULL, 0, NULL);
    assert_int_equal(kiln_program_get_info(program)->compiles, 0);
    kiln_program_release(program);
    suite_close(&fresh);
}

/* The real compiler, behind a variant that is there already. */
void a_program_behind_a_fallback_switches(suite *s)
{
    suite_fresh fresh;
    suite_sources fast;
    suite_sources generic;
    kiln_program *program = NULL;
    const char *dir = write_header(s, "#define SCALE 1\n");
    const kiln_define seven = {"VALUE", "7"};
    const kiln_define eight = {"VALUE", "8"};
    suite_open(s, "behind", 0, &fresh);
    suite_load("value", &fast);
    suite_load("value", &generic);
    suite_adorn(&fast, &seven, 1, &dir);
    suite_adorn(&generic, &eight, 1, &dir);
    kiln_program *ready = suite_build(fresh.device, "value", &eight, 1, &dir);
    const kiln_build_options options = {.struct_size = sizeof(options),
                                        .background = true,
                                        .fallback = generic.sources,
                                        .fallback_count = generic.count};
    OK(kiln_program_build(fresh.device, fast.sources, fast.count, &options, &program, &diag));
    suite_unload(&fast); /* they were copied */
    suite_unload(&generic);
    const int first = suite_value(fresh.device, program);
    assert_true(first == 8 || first == 7);
    OK(kiln_program_wait(program, &diag));
    OK(kiln_program_ready(program, &diag));
    assert_int_equal(suite_value(fresh.device, program), 7);
    kiln_program_release(program);
    kiln_program_release(ready);
    suite_close(&fresh);
}

void a_program_being_warmed_is_compiled_once(suite *s)
{
    suite_fresh fresh;
    suite_sources sources;
    kiln_warm *warm = NULL;
    kt_counters stats;
    kiln_warm_state state = {.struct_size = sizeof(state)};
    const char *dir = write_header(s, "#define SCALE 1\n");
    const kiln_define nine = {"VALUE", "9"};
    suite_open(s, "warm", 0, &fresh);
    suite_load("value", &sources);
    suite_adorn(&sources, &nine, 1, &dir);
    const kiln_warm_item item = {sources.sources, sources.count};
    OK(kiln_warm_start(fresh.device, &item, 1, NULL, &warm, &diag));
    suite_unload(&sources);
    kiln_program *program = suite_build(fresh.device, "value", &nine, 1, &dir);
    assert_int_equal(suite_value(fresh.device, program), 9);
    kiln_warm_wait(warm);
    OK(kiln_warm_get_state(warm, &state, &diag));
    assert_int_equal(state.built, 1);
    kt_counters_own(fresh.cache, &stats);
    assert_int_equal(stats.compiles, kiln_program_get_info(program)->stage_count);
    kiln_program_release(program);
    kiln_warm_destroy(warm);
    suite_close(&fresh);
}
