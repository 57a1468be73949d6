/* Where hipRTC and HIP's runtime are looked for under Windows, and which of several is taken. */
#include <string.h>

#include "apis/hip/backend/instance.h"
#include "support/cmocka.h"
#include "support/tmpdir.h"
#include "sys/file.h"
#include "sys/paths.h"

static char *make_dir(const char *base, const char *name)
{
    char *path = kt_path(base, name);
    assert_int_equal(kn_file_make_dir(path, NULL), KILN_OK);
    return path;
}

/* A library for this machine: this program will do. */
static void put_library(const char *dir, const char *name)
{
    size_t size = 0;
    char *own = kn_paths_own_program(), *path = kt_at(dir, name);
    char *data = kt_file_read(own, &size);
    assert_non_null(data);
    kt_file_write(path, data, size);
    free(data);
    free(own);
}

static void expect(const char *dir, const char *library, const char *runtime)
{
    kn_hip hip;
    char *path = kt_at(dir, library), *other = kt_at(dir, runtime);
    memset(&hip, 0, sizeof hip);
    assert_true(kn_hip_locate(&hip));
    assert_string_equal(hip.library, path);
    assert_string_equal(hip.runtime, runtime[0] != '\0' ? other : "");
}

static void expect_none(void)
{
    kn_hip hip;
    memset(&hip, 0, sizeof hip);
    assert_false(kn_hip_locate(&hip));
    assert_string_equal(hip.library, "");
}

static int leave_nothing(void **state)
{
    assert_int_equal(unsetenv("HIP_PATH"), 0);
    assert_int_equal(unsetenv("ROCM_PATH"), 0);
    assert_int_equal(unsetenv("ProgramFiles"), 0);
    assert_int_equal(unsetenv("SystemRoot"), 0);
    return kt_tmpdir_setup(state);
}

static void the_newest_of_a_directory_is_taken(void **state)
{
    static const char *const others[] = {
        "hiprtc.dll",        "hiprtc060.dll",           "hiprtc09999.dll", "hiprtc0999.dl",
        "hiprtc0999.dll.so", "hiprtc-builtins0999.dll", "hiprtc0_99.dll",  "amdhip64_.dll",
        "amdhip64_7x.dll",   "amdhip64_-9.dll",         "amdhip64_01.dlls"};
    char *base = make_dir(*state, "sdk"), *bin = make_dir(base, "bin");
    assert_int_equal(setenv("HIP_PATH", base, 1), 0);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        put_library(bin, others[i]);
    }
    expect_none();
    put_library(bin, "hiprtc0507.dll");
    expect(bin, "hiprtc0507.dll", "");
    put_library(bin, "amdhip64.dll");
    expect(bin, "hiprtc0507.dll", "amdhip64.dll");
    put_library(bin, "hiprtc0714.dll");
    put_library(bin, "hiprtc0604.dll");
    put_library(bin, "amdhip64_6.dll");
    put_library(bin, "amdhip64_7.dll");
    expect(bin, "hiprtc0714.dll", "amdhip64_7.dll");
    char *text = kt_at(bin, "hiprtc0800.dll"); /* the newest cannot be loaded */
    kt_file_write(text, "no library", 10);
    expect_none();
    free(bin);
    free(base);
}

static void the_compiler_is_opened_first_where_it_is_the_only_one(void **state)
{
    kn_hip hip;
    char *base = make_dir(*state, "sdk"), *bin = make_dir(base, "bin");
    char *path = kt_at(bin, "amd_comgr0701.dll");
    assert_int_equal(setenv("ROCM_PATH", base, 1), 0);
    put_library(bin, "hiprtc0701.dll");
    put_library(bin, "amd_comgr0701.dll");
    put_library(bin, "amd_comgr_tools.dll");
    memset(&hip, 0, sizeof hip);
    assert_true(kn_hip_locate(&hip));
    assert_string_equal(hip.compiler, path);
    put_library(bin, "amd_comgr_2.dll");
    memset(&hip, 0, sizeof hip);
    assert_true(kn_hip_locate(&hip));
    assert_string_equal(hip.compiler, "");
    free(bin);
    free(base);
}

static void places_have_an_order(void **state)
{
    char *programs = make_dir(*state, "programs"), *root = make_dir(*state, "windows");
    char *system = make_dir(root, "System32"), *base = make_dir(*state, "sdk");
    char *old = make_dir(programs, "AMD/ROCm/6.4/bin");
    char *newer = make_dir(programs, "AMD/ROCm/10.0/bin"), *bin = make_dir(base, "bin");
    char *cut = make_dir(programs, "AMD/ROCm/11"); /* not a release */
    put_library(system, "hiprtc0507.dll");
    put_library(system, "amdhip64_6.dll");
    assert_int_equal(setenv("SystemRoot", root, 1), 0);
    expect(system, "hiprtc0507.dll", "amdhip64_6.dll");
    put_library(old, "hiprtc0604.dll");
    put_library(newer, "hiprtc1000.dll");
    put_library(newer, "amdhip64_10.dll");
    assert_int_equal(setenv("ProgramFiles", programs, 1), 0);
    expect(newer, "hiprtc1000.dll", "amdhip64_10.dll");
    put_library(bin, "hiprtc0603.dll");
    assert_int_equal(setenv("HIP_PATH", base, 1), 0);
    kn_hip hip; /* its runtime is the driver's */
    char *library = kt_at(bin, "hiprtc0603.dll"), *runtime = kt_at(system, "amdhip64_6.dll");
    memset(&hip, 0, sizeof hip);
    assert_true(kn_hip_locate(&hip));
    assert_string_equal(hip.library, library);
    assert_string_equal(hip.runtime, runtime);
    free(programs);
    free(root);
    free(system);
    free(base);
    free(old);
    free(newer);
    free(bin);
    free(cut);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, leave_nothing, kt_tmpdir_teardown)
    const struct CMUnitTest tests[] = {
        CASE(the_newest_of_a_directory_is_taken),
        CASE(the_compiler_is_opened_first_where_it_is_the_only_one),
        CASE(places_have_an_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
