/* Every answer of the probe and every fault of a driver, from fake libraries, each in a process of
 * its own: LD_LIBRARY_PATH decides which libOpenCL.so.1 the backend finds. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apis/opencl/backend/opencl.h"
#include "support/failalloc.h"
#include "support/opencl_child.h"
#include "support/tmpdir.h"
#include "unit/backends/opencl/rig.h"

/* --- in the child ----------------------------------------------------------------------------- */

static int say_probe(void)
{
    void *instance = NULL;
    kiln_probe_report report = {.struct_size = sizeof(report)};
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_status status = kn_backend_opencl.open(&kn_host, &instance, &report, &diag);
    (void)printf("%s|%s|%u|%s|%s|%s\n", kiln_probe_outcome_name(report.outcome),
                 kiln_status_name(status), report.device_count, report.why, report.fix,
                 report.library);
    if (status == KILN_OK) {
        kn_backend_opencl.close(instance);
    }
    kiln_diag_clear(&diag);
    return 0;
}

static int say_identity(void)
{
    rig r;
    if (!rig_open(&r, NULL)) {
        return 1;
    }
    char *text = rig_identity(&r);
    (void)printf("%s", text);
    free(text);
    rig_close(&r);
    return 0;
}

/* Compiles and loads; prints how each went. */
static int say_compile(const char *text, kiln_language language, bool want_live)
{
    rig r;
    kn_artifact artifact;
    kiln_diag diag = KILN_DIAG_INIT;
    void *live = NULL, *loaded = NULL;
    if (!rig_open(&r, NULL)) {
        return 1;
    }
    kiln_source source = rig_source(text);
    source.language = language;
    kiln_status compiled = rig_compile(&r, &source, &artifact, want_live ? &live : NULL, &diag);
    (void)printf("%s %zu %s|", kiln_status_name(compiled), artifact.base.size,
                 live != NULL ? "live" : "-");
    (void)printf("%s|", diag.log != NULL ? diag.log : "");
    kiln_diag_clear(&diag);
    if (artifact.base.size > 0) {
        kiln_status status = rig_load(&r, &source, &artifact, &loaded, &diag);
        (void)printf("%s|%s", kiln_status_name(status), diag.why);
        kiln_diag_clear(&diag);
    }
    if (loaded != NULL) {
        kn_backend_opencl.device->program_unload(r.device, loaded);
    }
    if (live != NULL) {
        kn_backend_opencl.device->program_unload(r.device, live);
    }
    kn_artifact_deinit(&artifact);
    rig_close(&r);
    return 0;
}

/* Everything from opening to loading; false if it said that memory ran out. */
static bool whole_way(void *user)
{
    const kiln_device_ops *ops = kn_backend_opencl.device;
    const kiln_compiler_ops *compiler = kn_backend_opencl.compiler;
    kiln_probe_report report = {.struct_size = sizeof(report)};
    kiln_target target = {0};
    kn_artifact artifact;
    void *instance = NULL, *device = NULL, *live = NULL, *loaded = NULL;
    const kiln_define define = {"A", "with blank"};
    const kiln_header header = {"h.h", "", 0};
    const kiln_artifact *artifacts[] = {&artifact.base};
    size_t count = 0;
    (void)user;
    kiln_source source = rig_source("#include \"h.h\"\n__kernel void k(void) {}");
    source.defines = &define;
    source.define_count = 1;
    source.headers = &header;
    source.header_count = 1;
    kn_artifact_init(&artifact);
    kiln_status status = kn_backend_opencl.open(&kn_host, &instance, &report, NULL);
    if (status == KILN_OK) {
        status = compiler->target_of_device(instance, 0, &target, NULL);
    }
    if (status == KILN_OK) {
        status = ops->device_open(instance, 0, &device, NULL);
    }
    if (status == KILN_OK) {
        kiln_compile_request request = {
            .stage = compiler->stages(instance, &target, KILN_LANG_OPENCL_C, &count),
            .target = &target,
            .source = &source,
            .device = device,
            .want_live = true,
        };
        status = compiler->compile(instance, &request, &artifact.base, &live, NULL);
    }
    if (status == KILN_OK) {
        kiln_load_request request = {
            .target = &target, .source = &source, .artifacts = artifacts, .artifact_count = 1};
        status = ops->program_load(device, &request, &loaded, NULL);
    }
    if (loaded != NULL) {
        ops->program_unload(device, loaded);
    }
    if (live != NULL) {
        ops->program_unload(device, live);
    }
    ops->device_close(device);
    if (instance != NULL) {
        kn_backend_opencl.close(instance);
    }
    kn_artifact_deinit(&artifact);
    return status == KILN_OK;
}

static int child(const char *word)
{
    if (strcmp(word, "memory") == 0) {
        (void)printf("%s\n", kt_failalloc_each(whole_way, NULL) > 40 ? "all tried" : "too few");
        return 0;
    }
    if (strcmp(word, "probe") == 0) {
        return say_probe();
    }
    if (strcmp(word, "identity") == 0) {
        return say_identity();
    }
    if (strcmp(word, "spirv") == 0) {
        return say_compile("not really SPIR-V", KILN_LANG_SPIRV, true);
    }
    static const char *const odd[] = {"broken", "stumble", "silent"};
    const char *text = "__kernel void k(void) {}";
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        text = strcmp(word, odd[i]) == 0 ? odd[i] : text;
    }
    return say_compile(text, KILN_LANG_OPENCL_C, strcmp(word, "offline") != 0);
}

/* --- in the parent ---------------------------------------------------------------------------- */

static const char *run(const char *dir, const char *variant, const char *word)
{
    const char *argv[] = {NULL, word, NULL};
    child_variant = variant;
    (void)child_run(dir, argv, NULL);
    return child_last.output;
}

static const char *start(void **state, const char *variant, const char *word)
{
    const char *text = run((const char *)*state, variant, word);
    assert_int_equal(child_last.exit_code, 0);
    return text;
}

static void has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        print_error("'%s' is not in: %s\n", part, text);
    }
    assert_non_null(strstr(text, part));
}

static void a_good_library_is_ready(void **state)
{
    (void)start(state, "good", "probe");
    child_printed("ready|KILN_OK|1|1 device on 1 platform|");
    has(child_last.output, "good/libOpenCL.so.1");
}

static void P5_a_loader_without_drivers_is_no_device(void **state)
{
    assert_int_equal(setenv("OCL_ICD_VENDORS", "/no/such/folder", 1), 0);
    (void)start(state, "no_platform", "probe");
    child_printed("no device|KILN_E_UNAVAILABLE|0|");
    has(child_last.output, "no driver is registered");
    has(child_last.output, "pocl-opencl-icd");
    assert_int_equal(unsetenv("OCL_ICD_VENDORS"), 0);
}

/* Too little memory for a driver's library, or a library that is not there. */
static void K12_a_loader_that_opens_no_driver_is_told_from_one_without(void **state)
{
    char dir[] = "/tmp/kiln-icd-XXXXXX";
    char file[64];
    assert_non_null(mkdtemp(dir));
    (void)snprintf(file, sizeof(file), "%s/one.icd", dir);
    FILE *written = fopen(file, "w");
    assert_non_null(written);
    assert_int_equal(fclose(written), 0);
    assert_int_equal(setenv("OCL_ICD_VENDORS", dir, 1), 0);
    (void)start(state, "no_platform", "probe");
    child_printed("no device|KILN_E_UNAVAILABLE|0|");
    has(child_last.output, "could open no driver: 1 registered");
    has(child_last.output, "ulimit -v");
    assert_int_equal(unsetenv("OCL_ICD_VENDORS"), 0);
    assert_int_equal(remove(file), 0);
    assert_int_equal(remove(dir), 0);
}

static void P5_too_old_a_loader_names_what_it_lacks(void **state)
{
    (void)start(state, "too_old", "probe");
    child_printed("driver too old|KILN_E_UNAVAILABLE|0|");
    has(child_last.output, "too_old/libOpenCL.so.1");
    has(child_last.output, "clCreateSubBuffer");
    has(child_last.output, "kiln needs 1.2");
}

static void P5_too_old_a_driver_names_both_versions(void **state)
{
    (void)start(state, "old_driver", "probe");
    child_printed("driver too old|KILN_E_UNAVAILABLE|0|");
    has(child_last.output, "OpenCL 1.1");
    has(child_last.output, "kiln needs OpenCL 1.2");
}

static void P5_a_missing_symbol_is_named(void **state)
{
    (void)start(state, "no_symbol", "probe");
    child_printed("symbol missing|KILN_E_UNAVAILABLE|0|");
    has(child_last.output, "clCreateProgramWithBinary");
}

static void P5_a_file_that_is_no_library_is_unusable(void **state)
{
    const char *dir = (const char *)*state;
    char *path = kt_at(dir, "libOpenCL.so.1");
    kt_file_write(path, "not a library", 13);
    (void)start(state, dir, "probe");
    child_printed("library unusable|KILN_E_UNAVAILABLE|0|");
    has(child_last.output, "libOpenCL.so.1");
}

static void P1_one_bad_platform_does_not_hide_the_others(void **state)
{
    (void)start(state, "bad_platform", "probe");
    child_printed("ready|KILN_OK|1|1 device on 2 platforms");
    has(child_last.output, "platform 'Broken Platform': CL_OUT_OF_HOST_MEMORY");
}

static void P1_a_crash_stays_in_the_child(void **state)
{
    (void)run((const char *)*state, "crashing", "probe");
    assert_int_equal(child_last.signal, SIGABRT);
    assert_false(child_last.timed_out);
}

static void P2_a_hang_ends_with_its_limit(void **state)
{
    const uint64_t before = child_limit_ns;
    child_limit_ns = 300000000U;
    (void)run((const char *)*state, "hanging", "probe");
    child_limit_ns = before;
    assert_true(child_last.timed_out);
}

static void K2_another_build_with_the_same_versions_is_another_identity(void **state)
{
    char *good = strdup(start(state, "good", "identity"));
    char *again = strdup(start(state, "good", "identity"));
    char *other = strdup(start(state, "other_build", "identity"));
    assert_string_equal(good, again);
    assert_string_not_equal(good, other);
    /* Nothing but the build id differs. */
    const char *a = strstr(good, "opencl.module=");
    const char *b = strstr(other, "opencl.module=");
    assert_non_null(a);
    assert_non_null(b);
    assert_int_equal(a - good, b - other);
    assert_memory_equal(good, other, (size_t)(a - good));
    assert_string_equal(strchr(a, '\n'), strchr(b, '\n'));
    free(other);
    free(again);
    free(good);
}

static void source_and_spirv_compile_and_load(void **state)
{
    (void)start(state, "good", "compile");
    child_printed("KILN_OK 29 live||KILN_OK|");
    (void)start(state, "good", "spirv");
    child_printed("KILN_OK 22 live||KILN_OK|");
    (void)start(state, "good", "broken");
    child_printed("KILN_E_COMPILE 0 -|1:1: it is broken|");
}

/* PoCL fails so, once, when another process works in its own cache directory. */
static void a_build_that_fails_without_a_word_is_tried_again(void **state)
{
    (void)start(state, "good", "stumble");
    child_printed("KILN_OK 12 live||KILN_OK|");
    (void)start(state, "good", "silent");
    child_printed("KILN_E_COMPILE 0 -||");
}

static void D3_an_empty_binary_is_not_kept_and_the_program_works(void **state)
{
    (void)start(state, "empty", "compile");
    child_printed("KILN_OK 0 live||");
    (void)start(state, "empty", "offline");
    child_printed("KILN_E_UNSUPPORTED 0 -||");
}

static void D3_a_lazy_driver_is_made_to_compile_before_its_binary_is_read(void **state)
{
    (void)start(state, "lazy", "compile");
    child_printed("KILN_OK 29 live||KILN_OK|");
}

static void D4_a_refused_binary_is_rejected(void **state)
{
    (void)start(state, "refusing", "compile");
    child_printed("KILN_OK 29 live||KILN_E_REJECTED|");
    has(child_last.output, "clCreateProgramWithBinary returned CL_INVALID_BINARY (-42)");
    (void)start(state, "refusing_build", "compile");
    child_printed("KILN_OK 29 live||KILN_E_REJECTED|");
    has(child_last.output, "clBuildProgram returned CL_BUILD_PROGRAM_FAILURE (-11)");
}

/* Some drivers compile when a binary is asked for: once a program is enough. */
static void one_compile_reads_one_binary(void **state)
{
    (void)start(state, "good", "compile");
    assert_string_equal(child_last.calls, "SGB");
}

static void every_allocation_may_fail(void **state)
{
    char *dir = kt_at((const char *)*state, "tmp");
    const char *old = getenv("TMPDIR");
    char *before = old != NULL ? strdup(old) : NULL;
    assert_true(mkdir(dir, 0700) == 0 && setenv("TMPDIR", dir, 1) == 0);
    (void)start(state, "good", "memory");
    child_printed("all tried");
    assert_int_equal(rmdir(dir), 0); /* nothing is left in it */
    assert_int_equal(before != NULL ? setenv("TMPDIR", before, 1) : unsetenv("TMPDIR"), 0);
    free(before);
}

#define TEST(name) kt_dir_test(name)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(a_good_library_is_ready),
        TEST(every_allocation_may_fail),
        TEST(P5_a_loader_without_drivers_is_no_device),
        TEST(K12_a_loader_that_opens_no_driver_is_told_from_one_without),
        TEST(P5_too_old_a_loader_names_what_it_lacks),
        TEST(P5_too_old_a_driver_names_both_versions),
        TEST(P5_a_missing_symbol_is_named),
        TEST(P5_a_file_that_is_no_library_is_unusable),
        TEST(P1_one_bad_platform_does_not_hide_the_others),
        TEST(P1_a_crash_stays_in_the_child),
        TEST(P2_a_hang_ends_with_its_limit),
        TEST(K2_another_build_with_the_same_versions_is_another_identity),
        TEST(source_and_spirv_compile_and_load),
        TEST(a_build_that_fails_without_a_word_is_tried_again),
        TEST(D3_an_empty_binary_is_not_kept_and_the_program_works),
        TEST(D3_a_lazy_driver_is_made_to_compile_before_its_binary_is_read),
        TEST(D4_a_refused_binary_is_rejected),
        TEST(one_compile_reads_one_binary),
    };
    if (argc == 2) {
        return child(argv[1]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
