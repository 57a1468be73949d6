/* The walk: sharing, hits, refusals, bypass, faults at each step. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kiln/unstable/compile.h>
#include <kiln/unstable/reflect.h>

#include "support/failalloc.h"
#include "unit/core/rig.h"

static const char warned[] = "warn look out\nkernel saxpy a:float x:floats y:floats\n"
                             "y = a x * y +\n";

static void K9_a_hit_gives_back_what_the_compile_gave(void **state)
{
    rig *r = *state;
    kiln_source source = rig_source(warned);
    const kiln_param *const *params = NULL;
    size_t count = 0;
    rig_open(r, NULL);
    for (int process = 0; process < 2; process++) {
        kiln_program *program = rig_build(r, &source);
        const kiln_build_info *info = kiln_program_get_info(program);
        assert_int_equal(info->compiles, process == 0 ? 2 : 0);
        assert_int_equal(info->origin, process == 0 ? KILN_ORIGIN_COMPILED : KILN_ORIGIN_DISK);
        assert_string_equal(info->log, "test.fake:1: warning: look out\n");
        assert_int_equal(kiln_program_entry_count(program), 1);
        assert_string_equal(kiln_program_entry(program, 0), "saxpy");
        RIG_OK(kiln_program_get_params(program, "saxpy", &params, &count, &diag));
        assert_int_equal(count, 3);
        assert_string_equal(params[0]->name, "a");
        kiln_program_release(program);
        rig_close(r);
        rig_open(r, NULL);
    }
}

/* The facts of an artifact, in kiln_compile's blob, however it was made. */
static void K9_facts_are_the_same_on_a_hit(void **state)
{
    rig *r = *state;
    kiln_source source = rig_source(warned);
    kiln_blob *blobs[2] = {NULL, NULL};
    kiln_origin origin = KILN_ORIGIN_NONE;
    for (int i = 0; i < 2; i++) {
        rig_open(r, NULL);
        RIG_OK(kiln_compile(r->runtime, "fake:0", &source, &blobs[i], &origin, &diag));
        assert_int_equal(origin, i == 0 ? KILN_ORIGIN_COMPILED : KILN_ORIGIN_DISK);
        rig_close(r);
    }
    assert_int_equal(kiln_blob_facts_size(blobs[0]), kiln_blob_facts_size(blobs[1]));
    assert_memory_equal(kiln_blob_facts(blobs[0]), kiln_blob_facts(blobs[1]),
                        kiln_blob_facts_size(blobs[0]));
    assert_int_equal(kiln_blob_size(blobs[0]), kiln_blob_size(blobs[1]));
    kiln_blob_release(blobs[0]);
    kiln_blob_release(blobs[1]);
}

static void programs_are_shared_by_device_and_weakly(void **state)
{
    rig *r = *state;
    kiln_source source = rig_source(rig_saxpy);
    rig_open(r, NULL);
    kiln_program *first = rig_build(r, &source);
    kiln_program *again = rig_build(r, &source);
    assert_ptr_equal(first, again);
    kiln_device *zero = r->device;
    r->device = kiln_runtime_device(r->runtime, 1);
    kiln_program *other = rig_build(r, &source);
    assert_ptr_not_equal(first, other);
    /* Two devices share no handle; what is portable was compiled once. */
    assert_ptr_not_equal(first->handle, other->handle);
    assert_int_equal(rig_calls(r, FAKE_COMPILE), 1);
    assert_int_equal(rig_calls(r, FAKE_LINK), 2);
    kiln_program_release(first);
    assert_int_equal(rig_calls(r, FAKE_UNLOAD), 0);
    kiln_program_release(again);
    assert_int_equal(rig_calls(r, FAKE_UNLOAD), 1);
    kiln_program_release(other);
    r->device = zero;
    kiln_program *later = rig_build(r, &source);
    assert_int_equal(kiln_program_get_info(later)->origin, KILN_ORIGIN_MEMORY);
    assert_int_equal(rig_calls(r, FAKE_LOAD), 1); /* what was compiled had come loaded */
    kiln_program_release(later);
}

/* Entries decide which program it is even where the first stage's code is the same. */
static void requests_that_differ_share_nothing(void **state)
{
    rig *r = *state;
    kiln_source source = rig_source(rig_saxpy);
    kiln_source other = source;
    const char *option = "-x";
    other.options = &option;
    other.option_count = 1;
    rig_open(r, NULL);
    kiln_program *first = rig_build(r, &source);
    kiln_program *second = rig_build(r, &other);
    assert_ptr_not_equal(first, second);
    kiln_program_release(first);
    kiln_program_release(second);
}

/* --- refusals --------------------------------------------------------------------------------- */

static void fill_cache(rig *r, const kiln_source *source)
{
    rig_open(r, NULL);
    (void)rig_key(r, source, NULL);
    rig_close(r);
}

static void D4_a_refused_binary_is_rebuilt_once_and_replaced(void **state)
{
    rig *r = *state;
    kiln_source source = rig_source(warned);
    fill_cache(r, &source);
    assert_int_equal(setenv("KILN_FAKE_FAULTS", "load=reject@1", 1), 0);
    rig_open(r, NULL);
    rig_log_start();
    kiln_program *program = rig_build(r, &source);
    const char *log = rig_log_stop();
    assert_non_null(strstr(log, "the driver refused the cached binary"));
    assert_int_equal(kiln_program_get_info(program)->compiles, 1); /* the driver's stage alone */
    assert_int_equal(kiln_program_get_info(program)->origin, KILN_ORIGIN_COMPILED);
    assert_string_equal(kiln_program_get_info(program)->log, "test.fake:1: warning: look out\n");
    assert_int_equal(rig_stats(r).rejected, 1);
    kiln_program_release(program);
    rig_close(r);
    /* The next start finds the new one. */
    assert_int_equal(unsetenv("KILN_FAKE_FAULTS"), 0);
    rig_open(r, NULL);
    assert_int_equal(rig_compiles(r, &source), 0);
    assert_int_equal(rig_stats(r).rejected, 0);
}

/* An entry that is whole, under the right key, and yet no artifact: put there by something else. */
static void plant_junk(rig *r, const kiln_source *source)
{
    kn_build build;
    kiln_blob *blob = NULL;
    RIG_OK(kn_build_init(&build, r->cache, r->device->driver, &r->device->target, NULL, source,
                         NULL, &diag));
    RIG_OK(kn_stage_key(&build, 0, &diag));
    RIG_OK(kiln_blob_create("not an artifact", 15, "x", 1, &blob, &diag));
    RIG_OK(kiln_cache_put(r->cache, build.runs[0].recipe, blob, 0, &diag));
    kiln_blob_release(blob);
    kn_build_deinit(&build);
}

static void D1_an_entry_that_is_no_artifact_is_made_again(void **state)
{
    rig *r = *state;
    kiln_source source = rig_source(rig_saxpy);
    fill_cache(r, &source);
    rig_open(r, NULL);
    plant_junk(r, &source);
    rig_log_start();
    kiln_program *program = rig_build(r, &source);
    assert_non_null(strstr(rig_log_stop(), "is not a result of"));
    assert_int_equal(kiln_program_get_info(program)->compiles, 1);
    kiln_program_release(program);
    rig_close(r);
    rig_open(r, NULL);
    assert_int_equal(rig_compiles(r, &source), 0);
}

/* What a driver refuses need not be scripted: bytes of another driver under this one's key. */
static void D4_a_binary_of_another_driver_is_rebuilt(void **state)
{
    rig *r = *state;
    kiln_source source = rig_source(rig_saxpy);
    rig_open(r, NULL);
    kiln_program *program = rig_build(r, &source);
    kiln_blob *blob = NULL;
    kiln_blob *bad = NULL;
    RIG_OK(kiln_cache_get(r->cache, &kiln_program_get_info(program)->key, &blob, NULL, &diag));
    char *bytes = malloc(kiln_blob_size(blob));
    assert_non_null(bytes);
    memcpy(bytes, kiln_blob_data(blob), kiln_blob_size(blob));
    bytes[5] ^= 1;
    RIG_OK(kiln_blob_create(bytes, kiln_blob_size(blob), kiln_blob_facts(blob),
                            kiln_blob_facts_size(blob), &bad, &diag));
    RIG_OK(kiln_cache_put(r->cache, program->recipe, bad, 1, &diag));
    free(bytes);
    kiln_blob_release(blob);
    kiln_blob_release(bad);
    kiln_program_release(program);
    rig_close(r);
    rig_open(r, NULL);
    assert_int_equal(rig_compiles(r, &source), 1);
    assert_int_equal(rig_stats(r).rejected, 1);
}

static void D4_a_refusal_works_on_a_cache_that_cannot_be_written(void **state)
{
    rig *r = *state;
    kiln_source source = rig_source(rig_saxpy);
    fill_cache(r, &source);
    assert_int_equal(setenv("KILN_FAKE_FAULTS", "load=reject@1", 1), 0);
    rig_open_cache(r, NULL, KILN_CACHE_READONLY);
    assert_int_equal(rig_compiles(r, &source), 1);
    /* Memory has the new one: the third load is not refused. */
    assert_int_equal(rig_compiles(r, &source), 0);
}

static void D4_a_driver_that_refuses_what_it_made_is_an_error(void **state)
{
    rig *r = *state;
    kiln_source source = rig_source(rig_saxpy);
    kiln_diag diag = KILN_DIAG_INIT;
    fill_cache(r, &source);
    assert_int_equal(setenv("KILN_FAKE_FAULTS", "load=reject", 1), 0);
    rig_open(r, NULL);
    /* A live program would spare the load; without one there is nothing left to try. */
    kiln_backend plain = kn_backend_fake;
    plain.caps &= ~(uint32_t)KILN_CAP_LIVE_COMPILE;
    r->device->driver->in.backend = &plain;
    assert_int_equal(rig_try(r, &source, &diag), KILN_E_REJECTED);
    assert_int_equal(diag.status, KILN_E_REJECTED);
    assert_non_null(strstr(diag.why, "load=reject"));
    assert_int_equal(rig_calls(r, FAKE_LOAD), 2);
    kiln_diag_clear(&diag);
    rig_close(r);
    /* D3: what does not load is not kept. */
    assert_int_equal(unsetenv("KILN_FAKE_FAULTS"), 0);
    rig_open(r, NULL);
    assert_int_equal(rig_compiles(r, &source), 1);
}

/* --- failures --------------------------------------------------------------------------------- */

static void D3_failures_are_never_stored(void **state)
{
    static const struct {
        const char *faults;
        kiln_status status;
    } rows[] = {
        {"compile=compile", KILN_E_COMPILE}, {"compile=empty", KILN_E_INTERNAL},
        {"compile=nomem", KILN_E_NOMEM},     {"link=unavailable", KILN_E_UNAVAILABLE},
        {"link=empty", KILN_E_INTERNAL},     {"identify=fail", KILN_E_INTERNAL},
        {"device=lost", KILN_E_DEVICE_LOST},
    };
    rig *r = *state;
    kiln_source source = rig_source(rig_saxpy);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        kiln_diag diag = KILN_DIAG_INIT;
        assert_int_equal(setenv("KILN_FAKE_FAULTS", rows[i].faults, 1), 0);
        rig_open(r, NULL);
        for (int round = 0; round < 2; round++) {
            assert_int_equal(rig_try(r, &source, &diag), rows[i].status);
            assert_int_equal(diag.status, rows[i].status);
            assert_true(diag.why[0] != '\0');
        }
        char *path = kt_at(r->dir, "cache/v1/fake-0");
        assert_int_equal(kt_file_count(path), 0);
        kiln_diag_clear(&diag);
        rig_close(r);
    }
}

static void a_syntax_error_brings_the_log(void **state)
{
    rig *r = *state;
    kiln_source source = rig_source("warn first\nfail on purpose\n");
    kiln_diag diag = KILN_DIAG_INIT;
    rig_open(r, NULL);
    assert_int_equal(rig_try(r, &source, &diag), KILN_E_COMPILE);
    assert_string_equal(diag.log, "test.fake:1: warning: first\ntest.fake:2: error: on purpose\n");
    assert_int_equal(rig_stats(r).puts, 0);
    assert_true(rig_stats(r).compile_failures > 0);
    kiln_diag_clear(&diag);
}

static void unsound_sources_are_refused(void **state)
{
    rig *r = *state;
    kiln_source source = rig_source(rig_saxpy);
    const char *none[] = {NULL};
    kiln_define nameless = {"", "1"};
    kiln_define equals = {"A=B", "1"};
    kiln_header untold = {"x.inc", NULL, 3};
    rig_open(r, NULL);
#define REFUSED(...)                                                                               \
    do {                                                                                           \
        kiln_source bad = source;                                                                  \
        kiln_diag diag = KILN_DIAG_INIT;                                                           \
        __VA_ARGS__;                                                                               \
        assert_int_equal(rig_try(r, &bad, &diag), KILN_E_INVALID);                                 \
        assert_true(diag.why[0] != '\0');                                                          \
    } while (0)
    REFUSED(bad.text = NULL);
    REFUSED(bad.length = 0);
    REFUSED(bad.struct_size = 8);
    REFUSED(bad.option_count = 1);
    REFUSED(bad.options = none; bad.option_count = 1);
    REFUSED(bad.entries = none; bad.entry_count = 1);
    REFUSED(bad.include_dirs = none; bad.include_dir_count = 1);
    REFUSED(bad.defines = &nameless; bad.define_count = 1);
    REFUSED(bad.defines = &equals; bad.define_count = 1);
    REFUSED(bad.headers = &untold; bad.header_count = 1);
#undef REFUSED
    assert_int_equal(rig_calls(r, FAKE_COMPILE), 0);
}

static const kiln_stage *too_many_stages(void *instance, const kiln_target *target,
                                         kiln_language language, size_t *out_count)
{
    static const kiln_stage stages[9] = {{.name = "many"}};
    (void)instance, (void)target, (void)language;
    *out_count = 9;
    return stages;
}

static void a_backend_with_too_many_stages_is_refused(void **state)
{
    rig *r = *state;
    kiln_source source = rig_source(rig_saxpy);
    kiln_diag diag = KILN_DIAG_INIT;
    rig_open(r, NULL);
    const kiln_backend *fake = r->device->driver->in.backend;
    kiln_compiler_ops ops = *fake->compiler;
    kiln_backend many = *fake;
    ops.stages = too_many_stages;
    many.compiler = &ops;
    r->device->driver->in.backend = &many;
    assert_int_equal(rig_try(r, &source, &diag), KILN_E_UNSUPPORTED);
    r->device->driver->in.backend = fake;
    kiln_diag_clear(&diag);
}

/* --- past the cache --------------------------------------------------------------------------- */

static void what_cannot_be_known_goes_past_the_cache(void **state)
{
    rig *r = *state;
    kiln_source dated = rig_source("#define WHEN __DATE__\nkernel saxpy a:float x:floats y:floats\n"
                                   "y = a x * y +\n");
    kiln_source optioned = rig_source(rig_saxpy);
    const char *option = "-file=/etc/passwd";
    optioned.options = &option;
    optioned.option_count = 1;
    const kiln_source *sources[] = {&dated, &optioned};
    rig_open(r, NULL);
    for (size_t i = 0; i < 2; i++) {
        uint64_t before = rig_calls(r, FAKE_COMPILE);
        uint64_t bypassed = rig_stats(r).bypassed;
        kiln_program *first = rig_build(r, sources[i]);
        kiln_program *second = rig_build(r, sources[i]);
        assert_ptr_not_equal(first, second);
        assert_int_equal(rig_calls(r, FAKE_COMPILE), before + 2);
        assert_int_equal(rig_stats(r).bypassed, bypassed + 2);
        kiln_program_release(first);
        kiln_program_release(second);
    }
    kiln_build_options only = {.struct_size = sizeof(only), .cache_only = true};
    kiln_program *program = NULL;
    kiln_diag diag = KILN_DIAG_INIT;
    assert_int_equal(kiln_program_build(r->device, &dated, 1, &only, &program, &diag), KILN_MISS);
    assert_non_null(strstr(diag.why, "__DATE__"));
    kiln_diag_clear(&diag);
}

/* Called when a compile starts: in time to change something below it. */
typedef struct meddler {
    char *header;
    bool done;
} meddler;

static void meddle(void *user, const char *what, double seconds)
{
    meddler *m = user;
    (void)what;
    if (m->done || seconds > 0) {
        return;
    }
    m->done = true;
    if (m->header != NULL) {
        kt_file_write(m->header, "#define SCALE 4\n", 16);
    } else {
        assert_int_equal(setenv("KILN_FAKE_CODEGEN", "other", 1), 0);
    }
}

static void build_and_meddle(rig *r, const kiln_source *source, char *header)
{
    meddler m = {header, false};
    kiln_build_options options = {.struct_size = sizeof(options), .progress = meddle, .user = &m};
    kiln_program *program = NULL;
    RIG_OK(kiln_program_build(r->device, source, 1, &options, &program, &diag));
    assert_true(m.done);
    kiln_program_release(program);
}

/* An upgrade between the key and the compile: what the new compiler makes is not the old one's. */
static void K2_a_compiler_replaced_during_the_compile_is_not_stored(void **state)
{
    rig *r = *state;
    kiln_source source = rig_source(rig_saxpy);
    rig_open(r, NULL);
    build_and_meddle(r, &source, NULL);
    assert_int_equal(rig_stats(r).bypassed, 1);
    assert_int_equal(unsetenv("KILN_FAKE_CODEGEN"), 0);
    assert_int_equal(rig_compiles(r, &source),
                     2); /* the code, and the binary, whose key was made afterwards */
    assert_int_equal(rig_compiles(r, &source), 0);
}

/* Edits a header during the compile, and takes that back: what the next build has to compile. */
static uint32_t compiles_after_an_edit(rig *r, bool junk)
{
    char *header = kt_at(r->dir, "scale.inc");
    const char *dirs[] = {r->dir};
    kiln_source source = rig_source("#include \"scale.inc\"\nkernel value out:ints\nout = SCALE\n");
    source.include_dirs = dirs;
    source.include_dir_count = 1;
    kt_file_write(header, "#define SCALE 3\n", 16);
    rig_open(r, NULL);
    if (junk) {
        plant_junk(r, &source);
    }
    build_and_meddle(r, &source, header);
    kt_file_write(header, "#define SCALE 3\n", 16);
    return rig_compiles(r, &source);
}

/* The caller gets his program, nobody else gets it. */
static void K1_a_header_edited_during_the_compile_is_not_stored(void **state)
{
    rig *r = *state;
    assert_true(compiles_after_an_edit(r, false) > 0);
    assert_int_equal(rig_stats(r).bypassed, 1);
}

/* The same for what is compiled in the place of an entry that was none. */
static void K1_a_header_edited_while_an_entry_is_replaced_is_not_stored(void **state)
{
    assert_int_equal(compiles_after_an_edit(*state, true), 2);
}

/* --- threads ---------------------------------------------------------------------------------- */

static void *build_many(void *user)
{
    rig *r = user;
    kiln_source source = rig_source(rig_saxpy);
    for (int i = 0; i < 50; i++) {
        kiln_program_release(rig_build(r, &source));
    }
    return NULL;
}

static void build_in_threads(rig *r, size_t count)
{
    pthread_t threads[8];
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, build_many, r), 0);
    }
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
}

static void K13_many_threads_compile_once(void **state)
{
    rig *r = *state;
    assert_int_equal(setenv("KILN_FAKE_FAULTS", "compile=slow", 1), 0);
    rig_open(r, NULL);
    build_in_threads(r, 8);
    assert_int_equal(rig_calls(r, FAKE_COMPILE), 1);
    assert_int_equal(rig_calls(r, FAKE_LINK), 1);
    assert_int_equal(r->runtime->programs.count, 0);
}

/* A backend that wants one thread is called on one thread. */
static void one_thread_backends_get_a_thread(void **state)
{
    static kiln_backend single;
    rig *r = *state;
    single = kn_backend_fake;
    single.name = "fake-single";
    single.caps &= ~(uint32_t)KILN_CAP_ANY_THREAD;
    RIG_OK(kiln_backend_register(&single, &diag));
    rig_open(r, "fake-single");
    build_in_threads(r, 4);
    kiln_source source = rig_source(rig_saxpy);
    kiln_program *program = rig_build(r, &source);
    rig_launch(r, program, 64, 8); /* and its capture */
    kiln_program_release(program);
    assert_false(atomic_load(&r->fake->faults.other_threads));
    rig_close(r);
    rig_open(r, NULL); /* the same on a backend that takes any: it sees several */
    (void)build_many(r);
    build_in_threads(r, 1);
    assert_true(atomic_load(&r->fake->faults.other_threads));
}

/* --- memory ----------------------------------------------------------------------------------- */

static bool build_once(void *user)
{
    rig *r = user;
    kiln_source source = rig_source(warned);
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_program *program = NULL;
    kiln_status status = kiln_program_build(r->device, &source, 1, NULL, &program, &diag);
    if (status == KILN_OK) {
        assert_non_null(program);
        kiln_program_release(program);
    } else {
        assert_null(program);
        assert_int_equal(status, KILN_E_NOMEM);
    }
    kiln_diag_clear(&diag);
    return status == KILN_OK;
}

static void building_survives_want_of_memory(void **state)
{
    rig *r = *state;
    rig_open_cache(r, NULL, KILN_CACHE_DISABLED);
    assert_true(kt_failalloc_each(build_once, r) > 20);
}

static bool create_runtime(void *user)
{
    rig *r = user;
    kiln_runtime_options options;
    kiln_runtime *runtime = NULL;
    if (kiln_runtime_options_init(&options, NULL) != KILN_OK) {
        return false;
    }
    options.backend = "fake";
    options.strict = true;
    options.cache = r->cache;
    kiln_status status = kiln_runtime_create(&options, &runtime, NULL);
    assert_true(status == KILN_OK || status == KILN_E_NOMEM || status == KILN_E_UNAVAILABLE);
    kiln_runtime_destroy(runtime);
    return status == KILN_OK;
}

static void creating_a_runtime_survives_want_of_memory(void **state)
{
    rig *r = *state;
    rig_open(r, NULL);
    assert_true(kt_failalloc_each(create_runtime, r) > 5);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(K9_a_hit_gives_back_what_the_compile_gave),
        TEST(K9_facts_are_the_same_on_a_hit),
        TEST(programs_are_shared_by_device_and_weakly),
        TEST(requests_that_differ_share_nothing),
        TEST(D1_an_entry_that_is_no_artifact_is_made_again),
        TEST(D4_a_refused_binary_is_rebuilt_once_and_replaced),
        TEST(D4_a_binary_of_another_driver_is_rebuilt),
        TEST(D4_a_refusal_works_on_a_cache_that_cannot_be_written),
        TEST(D4_a_driver_that_refuses_what_it_made_is_an_error),
        TEST(D3_failures_are_never_stored),
        TEST(a_syntax_error_brings_the_log),
        TEST(unsound_sources_are_refused),
        TEST(a_backend_with_too_many_stages_is_refused),
        TEST(what_cannot_be_known_goes_past_the_cache),
        TEST(K1_a_header_edited_during_the_compile_is_not_stored),
        TEST(K2_a_compiler_replaced_during_the_compile_is_not_stored),
        TEST(K1_a_header_edited_while_an_entry_is_replaced_is_not_stored),
        TEST(K13_many_threads_compile_once),
        TEST(one_thread_backends_get_a_thread),
        TEST(building_survives_want_of_memory),
        TEST(creating_a_runtime_survives_want_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
