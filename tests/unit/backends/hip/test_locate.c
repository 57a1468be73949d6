/* Where hipRTC is looked for: nowhere but where the variables and the system say. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apis/hip/backend/instance.h"
#include "support/cmocka.h"
#include "support/tmpdir.h"

/* A file that is an ELF library of this machine: this program will do. By its own name, since under
 * QEMU a link to /proc/self/exe leads to QEMU. */
static void put_library(const char *directory, const char *name)
{
    char self[4096] = "";
    char *path = kt_at(directory, name);
    assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
    assert_int_equal(symlink(self, path), 0);
}

static char *make_lib(const char *root, const char *name)
{
    char *base = kt_at(root, name);
    char *lib = kt_path(base, "lib");
    assert_int_equal(mkdir(base, 0700), 0);
    assert_int_equal(mkdir(lib, 0700), 0);
    assert_int_equal(setenv("ROCM_PATH", base, 1), 0);
    return lib;
}

static void expect_library(const char *lib, const char *name)
{
    kn_hip hip;
    memset(&hip, 0, sizeof(hip));
    char *path = kt_at(lib, name);
    assert_true(kn_hip_locate(&hip));
    assert_string_equal(hip.library, path);
}

static void the_newest_of_a_directory_is_taken(void **state)
{
    char *lib = make_lib((const char *)*state, "rocm");
    put_library(lib, "libamdhip64.so.5");
    expect_library(lib, "libamdhip64.so.5");
    put_library(lib, "libamdhip64.so.6"); /* has no hipRTC in it */
    expect_library(lib, "libamdhip64.so.5");
    put_library(lib, "libhiprtc.so.5");
    put_library(lib, "libhiprtc.so.10");
    put_library(lib, "libhiprtc.so.9");
    put_library(lib, "libhiprtc.so.11.1");
    put_library(lib, "libhiprtc.so");
    put_library(lib, "libhiprtc.so.x");
    expect_library(lib, "libhiprtc.so.10");
    free(lib);
}

static void a_file_that_is_no_library_is_passed_over(void **state)
{
    kn_hip hip;
    memset(&hip, 0, sizeof(hip));
    char *lib = make_lib((const char *)*state, "text");
    char *path = kt_at(lib, "libhiprtc.so.7");
    kt_file_write(path, "text", 4);
    assert_true(!kn_hip_locate(&hip) || strcmp(hip.library, path) != 0);
    free(lib);
}

static void relative_directories_are_not_searched(void **state)
{
    kn_hip hip;
    char before[4096];
    memset(&hip, 0, sizeof(hip));
    char *lib = make_lib((const char *)*state, "relative");
    put_library(lib, "libhiprtc.so.7");
    assert_non_null(getcwd(before, sizeof(before)));
    assert_int_equal(chdir((const char *)*state), 0);
    assert_int_equal(setenv("ROCM_PATH", "relative", 1), 0);
    assert_int_equal(setenv("LD_LIBRARY_PATH", "relative/lib", 1), 0);
    assert_true(!kn_hip_locate(&hip) || strncmp(hip.library, "/", 1) == 0);
    assert_null(strstr(hip.library, "relative"));
    assert_int_equal(unsetenv("LD_LIBRARY_PATH"), 0);
    assert_int_equal(chdir(before), 0);
    free(lib);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        kt_dir_test(the_newest_of_a_directory_is_taken),
        kt_dir_test(a_file_that_is_no_library_is_passed_over),
        kt_dir_test(relative_directories_are_not_searched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
