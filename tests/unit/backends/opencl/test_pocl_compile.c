/* Compiling with PoCL: what reaches the compiler, and what it says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apis/opencl/backend/opencl.h"
#include "apis/opencl/backend/program.h"
#include "support/cmocka.h"
#include "support/skip.h"
#include "support/tmpdir.h"
#include "sys/thread.h"
#include "unit/backends/opencl/rig.h"

static rig shared;

static const kiln_device_ops *device(void)
{
    return kn_backend_opencl.device;
}

static void check_params(void *program)
{
    kiln_diag diag = KILN_DIAG_INIT;
    const kiln_param *params = NULL;
    size_t count = 0;
    assert_string_equal(device()->program_entry(shared.device, program, 0), "k");
    assert_null(device()->program_entry(shared.device, program, 1));
    rig_ok(device()->program_params(shared.device, program, "k", &params, &count, &diag), &diag);
    assert_int_equal(count, 4);
    assert_string_equal(params[0].name, "data");
    assert_string_equal(params[0].type, "float*");
    assert_int_equal(params[0].kind, KILN_ARG_BUFFER);
    assert_int_equal(params[1].kind, KILN_ARG_LOCAL);
    assert_string_equal(params[2].name, "v");
    assert_int_equal(params[2].kind, KILN_ARG_VALUE);
    assert_int_equal(params[2].size, 16);
    assert_int_equal(params[3].size, 8);
    assert_int_equal(
        device()->program_params(shared.device, program, "none", &params, &count, &diag),
        KILN_MISS);
}

static void K9_parameters_and_log_are_the_same_from_the_binary(void **state)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kn_artifact artifact;
    void *cold = NULL, *warm = NULL;
    kiln_source source =
        rig_source("#warning look here\n"
                   "__kernel void k(__global float *data, __local int *tmp, float4 v, ulong n)\n"
                   "{ tmp[get_local_id(0)] = (int)n; data[get_global_id(0)] = v.x; }\n");
    rig_ok(rig_compile(&shared, &source, &artifact, &cold, &diag), &diag);
    assert_non_null(artifact.base.log);
    assert_non_null(strstr(artifact.base.log, "look here"));
    rig_ok(rig_load(&shared, &source, &artifact, &warm, &diag), &diag);
    check_params(cold);
    check_params(warm);
    device()->program_unload(shared.device, warm);
    device()->program_unload(shared.device, cold);
    kn_artifact_deinit(&artifact);
}

static void a_syntax_error_gives_the_log_with_file_and_line(void **state)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kn_artifact artifact;
    void *program = NULL;
    kiln_source source = rig_source("__kernel void k(void)\n{\n    undeclared = 1;\n}\n");
    source.name = "kernels/broken.cl";
    assert_int_equal(rig_compile(&shared, &source, &artifact, &program, &diag), KILN_E_COMPILE);
    assert_null(program);
    assert_int_equal(artifact.base.size, 0);
    assert_int_equal(diag.vendor_code, CL_BUILD_PROGRAM_FAILURE);
    assert_non_null(diag.log);
    assert_non_null(strstr(diag.log, "broken.cl:3"));
    assert_non_null(strstr(diag.log, "undeclared"));
    kiln_diag_clear(&diag);
    kn_artifact_deinit(&artifact);
}

static void an_unknown_option_is_told_with_the_log(void **state)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kn_artifact artifact;
    const char *const options[] = {"-cl-no-such-thing"};
    kiln_source source = rig_source(rig_two_kernels);
    source.options = options;
    source.option_count = 1;
    assert_int_equal(rig_compile(&shared, &source, &artifact, NULL, &diag), KILN_E_COMPILE);
    kiln_diag_clear(&diag);
    kn_artifact_deinit(&artifact);
}

static void S9_dirs_with_blanks_and_letters_of_any_script_are_searched(void **state)
{
    char *dir = kt_at((const char *)*state, "with blank \xc3\xbc\xe6\x97\xa5 'quote'");
    char *plain = kt_at((const char *)*state, "plain");
    char *odd_header = kt_at(dir, "value.h");
    char *plain_header = kt_at(plain, "value.h");
    char *other_header = kt_at(plain, "other.h");
    assert_int_equal(mkdir(dir, 0700) | mkdir(plain, 0700), 0);
    kt_file_write(odd_header, "#define VALUE 7\n", 16);
    kt_file_write(plain_header, "#define VALUE 9\n", 16);
    kt_file_write(other_header, "#define OTHER 100\n", 18);
    const char *const dirs[] = {dir, plain};
    kiln_source source = rig_source("#include \"value.h\"\n#include <other.h>\n"
                                    "__kernel void k(__global float *a, float v)"
                                    "{ a[get_global_id(0)] = VALUE + OTHER + v; }\n");
    source.include_dirs = dirs;
    source.include_dir_count = 2;
    assert_true(rig_compile_and_run(&shared, &source) == 108.0F);
}

static void headers_in_memory_and_odd_definitions_reach_the_compiler(void **state)
{
    const char *temporary = (const char *)*state;
    const char *old = getenv("TMPDIR");
    char *before = old != NULL ? strdup(old) : NULL;
    assert_int_equal(setenv("TMPDIR", temporary, 1), 0);
    const kiln_header headers[] = {
        {"math/two.h", "#define TWO 2\n", 14},
        {"top.h", "#include \"math/two.h\"\n", 22},
    };
    const kiln_define defines[] = {
        {"PLAIN", "3"}, {"FLAG", NULL}, {"SUM(a, b)", "((a) + (b))"}, {"TEXT", "\"a b\""}};
    kiln_source source =
        rig_source("#include <top.h>\n#ifdef FLAG\n"
                   "__kernel void k(__global float *a, float v)"
                   "{ a[get_global_id(0)] = SUM(TWO, PLAIN) + sizeof(TEXT) + v; }\n"
                   "#endif\n");
    source.headers = headers;
    source.header_count = 2;
    source.defines = defines;
    source.define_count = 4;
    assert_true(rig_compile_and_run(&shared, &source) == 10.0F);
    assert_int_equal(rmdir(temporary), 0); /* nothing is left in it */
    assert_int_equal(mkdir(temporary, 0700), 0);
    assert_int_equal(before != NULL ? setenv("TMPDIR", before, 1) : unsetenv("TMPDIR"), 0);
    free(before);
}

static void a_header_outside_its_dir_is_refused(void **state)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kn_artifact artifact;
    const kiln_header headers[] = {{"a/../../x.h", "", 0}};
    kiln_source source = rig_source(rig_two_kernels);
    source.headers = headers;
    source.header_count = 1;
    assert_int_equal(rig_compile(&shared, &source, &artifact, NULL, &diag), KILN_E_INVALID);
    kiln_diag_clear(&diag);
    kn_artifact_deinit(&artifact);
}

/* PoCL looks there before all include directories; core must know, or a key misses it. */
static void K1_the_current_dir_is_searched_first_and_the_target_says_so(void **state)
{
    char *before = realpath(".", NULL);
    char *elsewhere = kt_at((const char *)*state, "elsewhere");
    char *good = kt_at(elsewhere, "chosen.h");
    char *stray = kt_at((const char *)*state, "chosen.h");
    const char *const dirs[] = {elsewhere};
    assert_int_equal(mkdir(elsewhere, 0700), 0);
    kt_file_write(good, "#define V 1\n", 12);
    kt_file_write(stray, "#define V 50\n", 13);
    kiln_source source = rig_source("#include <chosen.h>\n"
                                    "__kernel void k(__global float *a, float v)"
                                    "{ a[get_global_id(0)] = V + v; }\n");
    source.include_dirs = dirs;
    source.include_dir_count = 1;
    assert_int_equal(chdir((const char *)*state), 0);
    bool current_first = rig_compile_and_run(&shared, &source) == 51.0F;
    assert_int_equal(before != NULL ? chdir(before) : -1, 0);
    assert_int_equal(shared.target.searches_current, current_first);
    free(before);
}

static void errors_in_a_source_with_includes_name_the_users_files(void **state)
{
    char *dir = kt_at((const char *)*state, "with blank");
    char *header = kt_at(dir, "bad.h");
    const char *const dirs[] = {dir};
    kiln_diag diag = KILN_DIAG_INIT;
    kn_artifact artifact;
    char expected[4096];
    assert_int_equal(mkdir(dir, 0700), 0);
    kt_file_write(header, "\nint f(void) { return nothing; }\n", 33);
    kiln_source source = rig_source("#include \"bad.h\"\n__kernel void k(void) { nowhere; }\n");
    source.name = "kernels/user.cl";
    source.include_dirs = dirs;
    source.include_dir_count = 1;
    assert_int_equal(rig_compile(&shared, &source, &artifact, NULL, &diag), KILN_E_COMPILE);
    (void)snprintf(expected, sizeof(expected), "%s:2", header);
    assert_non_null(strstr(diag.log, expected));
    assert_non_null(strstr(diag.log, "user.cl:2"));
    assert_null(strstr(diag.log, "kiln-opencl-"));
    kiln_diag_clear(&diag);
    kn_artifact_deinit(&artifact);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(K9_parameters_and_log_are_the_same_from_the_binary),
        cmocka_unit_test(a_syntax_error_gives_the_log_with_file_and_line),
        cmocka_unit_test(an_unknown_option_is_told_with_the_log),
        kt_dir_test(S9_dirs_with_blanks_and_letters_of_any_script_are_searched),
        kt_dir_test(headers_in_memory_and_odd_definitions_reach_the_compiler),
        cmocka_unit_test(a_header_outside_its_dir_is_refused),
        kt_dir_test(K1_the_current_dir_is_searched_first_and_the_target_says_so),
        kt_dir_test(errors_in_a_source_with_includes_name_the_users_files),
    };
    char *cache = kt_tmpdir_create();
    (void)setenv("POCL_CACHE_DIR", cache, 1);
    (void)unsetenv("POCL_KERNEL_CACHE");
    if (!rig_open(&shared, "Portable Computing Language")) {
        kt_tmpdir_remove(cache);
        kn_test_skip("opencl", "PoCL is not installed");
    }
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    rig_close(&shared);
    kt_tmpdir_remove(cache);
    return failures;
}
