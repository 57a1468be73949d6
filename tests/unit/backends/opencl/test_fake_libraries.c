/* Every answer of the probe and every fault of a driver, from fake libraries, each in a process of
 * its own: LD_LIBRARY_PATH decides which libOpenCL.so.1 the backend finds. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "apis/opencl/backend/opencl.h"
#include "support/failalloc.h"
#include "support/tmpdir.h"
#include "sys/process.h"
#include "unit/backends/opencl/rig.h"

static char program_path[4096];

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

static char output[65536];
static struct {
    int exit_code;
    int signal;
    bool timed_out;
} last;

static const char *start_in(const char *dir, const char *word, uint64_t limit_ns)
{
    kiln_diag diag = KILN_DIAG_INIT;
    char variable[4200];
    const char *log = getenv("FAKECL_LOG_HERE");
    char log_variable[4200];
    (void)snprintf(variable, sizeof(variable), "LD_LIBRARY_PATH=%s", dir);
    (void)snprintf(log_variable, sizeof(log_variable), "FAKECL_LOG=%s", log ? log : "");
    const char *const argv[] = {program_path, word, NULL};
    const char *const environment[] = {variable, log_variable, NULL};
    kn_process_request request = {.argv = argv, .environment = environment};
    request.limit_ns = limit_ns;
    kn_process_result result = {0};
    rig_ok(kn_process_run(&request, &result, &diag), &diag);
    last.exit_code = result.exit_code;
    last.signal = result.signal;
    last.timed_out = result.timed_out;
    (void)snprintf(output, sizeof(output), "%s", result.out != NULL ? result.out : "");
    if (result.exit_code != 0 && result.err != NULL) {
        print_message("%s: %s\n", word, result.err);
    }
    kn_process_result_deinit(&result);
    return output;
}

static const char *start(const char *variant, const char *word)
{
    char dir[4096];
    (void)snprintf(dir, sizeof(dir), "%s/%s", KILN_FAKECL_DIR, variant);
    const char *text = start_in(dir, word, 60000000000U);
    assert_int_equal(last.exit_code, 0);
    return text;
}

static void starts_with(const char *text, const char *beginning)
{
    if (strncmp(text, beginning, strlen(beginning)) != 0) {
        print_error("got: %s\n", text);
    }
    assert_int_equal(strncmp(text, beginning, strlen(beginning)), 0);
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
    (void)state;
    starts_with(start("good", "probe"), "ready|KILN_OK|1|1 device on 1 platform|");
    has(output, "good/libOpenCL.so.1");
}

static void P5_a_loader_without_drivers_is_no_device(void **state)
{
    (void)state;
    assert_int_equal(setenv("OCL_ICD_VENDORS", "/no/such/folder", 1), 0);
    starts_with(start("no_platform", "probe"), "no device|KILN_E_UNAVAILABLE|0|");
    has(output, "no driver is registered");
    has(output, "pocl-opencl-icd");
    assert_int_equal(unsetenv("OCL_ICD_VENDORS"), 0);
}

/* Too little memory for a driver's library, or a library that is not there. */
static void K12_a_loader_that_opens_no_driver_is_told_from_one_without(void **state)
{
    (void)state;
    char dir[] = "/tmp/kiln-icd-XXXXXX";
    char file[64];
    assert_non_null(mkdtemp(dir));
    (void)snprintf(file, sizeof(file), "%s/one.icd", dir);
    FILE *written = fopen(file, "w");
    assert_non_null(written);
    assert_int_equal(fclose(written), 0);
    assert_int_equal(setenv("OCL_ICD_VENDORS", dir, 1), 0);
    starts_with(start("no_platform", "probe"), "no device|KILN_E_UNAVAILABLE|0|");
    has(output, "could open no driver: 1 registered");
    has(output, "ulimit -v");
    assert_int_equal(unsetenv("OCL_ICD_VENDORS"), 0);
    assert_int_equal(remove(file), 0);
    assert_int_equal(remove(dir), 0);
}

static void P5_too_old_a_loader_names_what_it_lacks(void **state)
{
    (void)state;
    starts_with(start("too_old", "probe"), "driver too old|KILN_E_UNAVAILABLE|0|");
    has(output, "too_old/libOpenCL.so.1");
    has(output, "clCreateSubBuffer");
    has(output, "kiln needs 1.2");
}

static void P5_too_old_a_driver_names_both_versions(void **state)
{
    (void)state;
    starts_with(start("old_driver", "probe"), "driver too old|KILN_E_UNAVAILABLE|0|");
    has(output, "OpenCL 1.1");
    has(output, "kiln needs OpenCL 1.2");
}

static void P5_a_missing_symbol_is_named(void **state)
{
    (void)state;
    starts_with(start("no_symbol", "probe"), "symbol missing|KILN_E_UNAVAILABLE|0|");
    has(output, "clCreateProgramWithBinary");
}

static void P5_a_file_that_is_no_library_is_unusable(void **state)
{
    const char *dir = (const char *)*state;
    char *path = kt_path(dir, "libOpenCL.so.1");
    kt_file_write(path, "not a library", 13);
    starts_with(start_in(dir, "probe", 60000000000U), "library unusable|KILN_E_UNAVAILABLE|0|");
    assert_int_equal(last.exit_code, 0);
    has(output, "libOpenCL.so.1");
    free(path);
}

static void P1_one_bad_platform_does_not_hide_the_others(void **state)
{
    (void)state;
    starts_with(start("bad_platform", "probe"), "ready|KILN_OK|1|1 device on 2 platforms");
    has(output, "platform 'Broken Platform': CL_OUT_OF_HOST_MEMORY");
}

static void P1_a_crash_stays_in_the_child(void **state)
{
    (void)state;
    (void)start_in(KILN_FAKECL_DIR "/crashing", "probe", 60000000000U);
    assert_int_equal(last.signal, SIGABRT);
    assert_false(last.timed_out);
}

static void P2_a_hang_ends_with_its_limit(void **state)
{
    (void)state;
    (void)start_in(KILN_FAKECL_DIR "/hanging", "probe", 300000000U);
    assert_true(last.timed_out);
}

static void K2_another_build_with_the_same_versions_is_another_identity(void **state)
{
    (void)state;
    char *good = strdup(start("good", "identity"));
    char *again = strdup(start("good", "identity"));
    char *other = strdup(start("other_build", "identity"));
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
    (void)state;
    starts_with(start("good", "compile"), "KILN_OK 29 live||KILN_OK|");
    starts_with(start("good", "spirv"), "KILN_OK 22 live||KILN_OK|");
    starts_with(start("good", "broken"), "KILN_E_COMPILE 0 -|1:1: it is broken|");
}

/* PoCL fails so, once, when another process works in its own cache directory. */
static void a_build_that_fails_without_a_word_is_tried_again(void **state)
{
    (void)state;
    starts_with(start("good", "stumble"), "KILN_OK 12 live||KILN_OK|");
    starts_with(start("good", "silent"), "KILN_E_COMPILE 0 -||");
}

static void D3_an_empty_binary_is_not_kept_and_the_program_works(void **state)
{
    (void)state;
    starts_with(start("empty", "compile"), "KILN_OK 0 live||");
    starts_with(start("empty", "offline"), "KILN_E_UNSUPPORTED 0 -||");
}

static void D3_a_lazy_driver_is_made_to_compile_before_its_binary_is_read(void **state)
{
    (void)state;
    starts_with(start("lazy", "compile"), "KILN_OK 29 live||KILN_OK|");
}

static void D4_a_refused_binary_is_rejected(void **state)
{
    (void)state;
    starts_with(start("refusing", "compile"), "KILN_OK 29 live||KILN_E_REJECTED|");
    has(output, "clCreateProgramWithBinary returned CL_INVALID_BINARY (-42)");
    starts_with(start("refusing_build", "compile"), "KILN_OK 29 live||KILN_E_REJECTED|");
    has(output, "clBuildProgram returned CL_BUILD_PROGRAM_FAILURE (-11)");
}

/* Some drivers compile when a binary is asked for: once a program is enough. */
static void one_compile_reads_one_binary(void **state)
{
    char *log = kt_path((const char *)*state, "log");
    (void)setenv("FAKECL_LOG_HERE", log, 1);
    (void)start("good", "compile");
    (void)unsetenv("FAKECL_LOG_HERE");
    char *calls = kt_file_read(log, NULL);
    assert_non_null(calls);
    assert_string_equal(calls, "SGB");
    free(calls);
    free(log);
}

static void every_allocation_may_fail(void **state)
{
    const char *dir = (const char *)*state;
    const char *old = getenv("TMPDIR");
    char *before = old != NULL ? strdup(old) : NULL;
    assert_int_equal(setenv("TMPDIR", dir, 1), 0);
    starts_with(start("good", "memory"), "all tried");
    assert_int_equal(rmdir(dir), 0); /* nothing is left in it */
    assert_int_equal(mkdir(dir, 0700), 0);
    assert_int_equal(before != NULL ? setenv("TMPDIR", before, 1) : unsetenv("TMPDIR"), 0);
    free(before);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_library_is_ready),
        cmocka_unit_test_setup_teardown(every_allocation_may_fail, kt_tmpdir_setup,
                                        kt_tmpdir_teardown),
        cmocka_unit_test(P5_a_loader_without_drivers_is_no_device),
        cmocka_unit_test(K12_a_loader_that_opens_no_driver_is_told_from_one_without),
        cmocka_unit_test(P5_too_old_a_loader_names_what_it_lacks),
        cmocka_unit_test(P5_too_old_a_driver_names_both_versions),
        cmocka_unit_test(P5_a_missing_symbol_is_named),
        cmocka_unit_test_setup_teardown(P5_a_file_that_is_no_library_is_unusable, kt_tmpdir_setup,
                                        kt_tmpdir_teardown),
        cmocka_unit_test(P1_one_bad_platform_does_not_hide_the_others),
        cmocka_unit_test(P1_a_crash_stays_in_the_child),
        cmocka_unit_test(P2_a_hang_ends_with_its_limit),
        cmocka_unit_test(K2_another_build_with_the_same_versions_is_another_identity),
        cmocka_unit_test(source_and_spirv_compile_and_load),
        cmocka_unit_test(a_build_that_fails_without_a_word_is_tried_again),
        cmocka_unit_test(D3_an_empty_binary_is_not_kept_and_the_program_works),
        cmocka_unit_test(D3_a_lazy_driver_is_made_to_compile_before_its_binary_is_read),
        cmocka_unit_test(D4_a_refused_binary_is_rejected),
        cmocka_unit_test_setup_teardown(one_compile_reads_one_binary, kt_tmpdir_setup,
                                        kt_tmpdir_teardown),
    };
    if (argc == 2) {
        return child(argv[1]);
    }
    if (realpath("/proc/self/exe", program_path) == NULL) {
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
