/* Objects loaded from bytes: in memory, from a directory, and where directories are mounted
 * noexec. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/cmocka.h"

#include "support/skip.h"
#include "support/tmpdir.h"
#include "sys/dylib.h"

typedef int answer_fn(void);

typedef struct object {
    char *data;
    size_t size;
} object;

/* A small object made by the system's compiler. */
static int make_object(void **state)
{
    char command[1024];
    char *dir = kt_tmpdir_create();
    char *path = kt_at(dir, "answer.so");
    object *o = calloc(1, sizeof(*o));
    assert_non_null(o);
    (void)snprintf(command, sizeof(command),
                   "echo 'static int n = 41; int answer(void) { return ++n; }' | "
                   "cc -shared -fPIC -x c - -o %s",
                   path);
    if (system(command) != 0) { /* NOLINT(cert-env33-c) */
        print_message("SKIP cc: no C compiler\n");
        exit(77);
    }
    o->data = kt_file_read(path, &o->size);
    assert_non_null(o->data);
    kt_tmpdir_remove(dir);
    *state = o;
    return 0;
}

static int free_object(void **state)
{
    object *o = *state;
    free(o->data);
    free(o);
    return 0;
}

static int call(kn_dylib *lib)
{
    answer_fn *answer = NULL;
    void *address = kn_dylib_symbol(lib, "answer");
    assert_non_null(address);
    memcpy(&answer, &address, sizeof(answer));
    return answer();
}

static void each_load_is_a_new_one(void **state)
{
    const object *o = *state;
    kn_dylib *libs[20];
    for (size_t i = 0; i < 20; i++) {
        assert_int_equal(kn_dylib_open_memory(o->data, o->size, NULL, &libs[i], NULL), KILN_OK);
        assert_int_equal(call(libs[i]), 42);
    }
    for (size_t i = 0; i < 20; i++) {
        assert_int_equal(call(libs[i]), 43);
        kn_dylib_close(libs[i]);
    }
}

static void no_descriptor_stays_open(void **state)
{
    const object *o = *state;
    kn_dylib *lib = NULL;
    const int before = open("/dev/null", O_RDONLY);
    (void)close(before);
    assert_int_equal(kn_dylib_open_memory(o->data, o->size, NULL, &lib, NULL), KILN_OK);
    const int after = open("/dev/null", O_RDONLY);
    (void)close(after);
    assert_int_equal(before, after);
    kn_dylib_close(lib);
}

static void a_dir_serves_and_stays_empty(void **state)
{
    const object *o = *state;
    char *dir = kt_tmpdir_create();
    const char *const dirs[] = {"/no/such/folder", dir, NULL};
    kn_dylib *lib = NULL;
    assert_int_equal(kn_dylib_open_memory(o->data, o->size, dirs, &lib, NULL), KILN_OK);
    assert_int_equal(call(lib), 42);
    kn_dylib_close(lib);
    assert_int_equal(rmdir(dir), 0);
    free(dir);
}

static void what_is_no_object_is_rejected(void **state)
{
    const object *o = *state;
    kn_dylib *lib = NULL;
    kiln_diag diag = KILN_DIAG_INIT;
    assert_int_equal(kn_dylib_open_memory("#!/bin/sh\n", 10, NULL, &lib, &diag), KILN_E_REJECTED);
    assert_null(lib);
    assert_int_equal(diag.status, KILN_E_REJECTED);
    assert_string_equal(diag.why, "it is empty or not a shared library");
    assert_int_equal(kn_dylib_open_memory(o->data, 0, NULL, &lib, &diag), KILN_E_REJECTED);
    assert_int_equal(kn_dylib_open_memory(o->data, 100, NULL, &lib, &diag), KILN_E_REJECTED);
    kiln_diag_clear(&diag);
}

static void nowhere_to_put_it_is_told(void **state)
{
    const object *o = *state;
    static const char *const dirs[] = {"/no/such/folder", "relative", "/proc", NULL};
    kn_dylib *lib = NULL;
    kiln_diag diag = KILN_DIAG_INIT;
    assert_int_equal(kn_dylib_open_memory(o->data, o->size, dirs, &lib, &diag), KILN_E_UNAVAILABLE);
    assert_non_null(strstr(diag.fix, "TMPDIR"));
    kiln_diag_clear(&diag);
}

/* Past the limit a write would end this program by SIGXFSZ. */
static void a_limit_on_the_size_of_files_is_told(void **state)
{
    const object *o = *state;
    kn_dylib *lib = NULL;
    kiln_diag diag = KILN_DIAG_INIT;
    struct rlimit before, low;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    low = (struct rlimit){.rlim_cur = o->size - 1, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    const kiln_status status = kn_dylib_open_memory(o->data, o->size, NULL, &lib, &diag);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(status, KILN_E_UNAVAILABLE);
    assert_null(lib);
    assert_non_null(strstr(diag.fix, "ulimit -f"));
    kiln_diag_clear(&diag);
}

/* In a child with a mount of its own: 0 good, 77 no right to mount, else the number of the step. */
static int in_noexec_dir(const object *o, const char *dir)
{
    const char *const dirs[] = {dir, NULL};
    kn_dylib *lib = NULL;
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", dir, "tmpfs", MS_NOEXEC | MS_NOSUID, NULL) != 0) {
        return 77;
    }
    if (kn_dylib_open_memory(o->data, o->size, dirs, &lib, NULL) != KILN_E_UNAVAILABLE) {
        return 1;
    }
    const char *const second[] = {dir, "/dev/shm", "/var/tmp", NULL};
    if (kn_dylib_open_memory(o->data, o->size, second, &lib, NULL) != KILN_OK || call(lib) != 42) {
        return 2;
    }
    kn_dylib_close(lib);
    if (setenv("TMPDIR", dir, 1) != 0 ||
        kn_dylib_open_memory(o->data, o->size, NULL, &lib, NULL) != KILN_OK || call(lib) != 42) {
        return 3;
    }
    kn_dylib_close(lib);
    return 0;
}

/* FAILURES row 66. */
static void a_noexec_temporary_dir_is_no_trouble(void **state)
{
    const object *o = *state;
    int status = 0;
    if (kn_test_is_emulated()) {
        print_message("QEMU maps code to be read\n");
        skip();
    }
    char *dir = kt_tmpdir_create();
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(in_noexec_dir(o, dir));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    kt_tmpdir_remove(dir);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) {
        print_message("no right to mount here\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_load_is_a_new_one),
        cmocka_unit_test(no_descriptor_stays_open),
        cmocka_unit_test(a_dir_serves_and_stays_empty),
        cmocka_unit_test(what_is_no_object_is_rejected),
        cmocka_unit_test(nowhere_to_put_it_is_told),
        cmocka_unit_test(a_limit_on_the_size_of_files_is_told),
        cmocka_unit_test(a_noexec_temporary_dir_is_no_trouble),
    };
    return cmocka_run_group_tests(tests, make_object, free_object);
}
