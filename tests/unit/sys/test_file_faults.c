/* Files on a disk that misbehaves. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/cmocka.h"
#include "support/faultfs.h"
#include "support/tmpdir.h"
#include "sys/file.h"
#include "sys/lock.h"

static int begin(void **state)
{
    return kt_tmpdir_setup(state);
}

static int end(void **state)
{
    kt_faultfs_set("", "");
    return kt_tmpdir_teardown(state);
}

static void reading_survives_short_reads_and_interruptions(void **state)
{
    char *path = kt_at(*state, "a");
    void *data;
    size_t size;
    kt_file_write(path, "0123456789", 10);
    kt_faultfs_set(*state, "open:1:EINTR;read:1:EINTR;read:2:short;read:3:short;read:4:EINTR");
    assert_int_equal(kn_file_read(path, 10, true, &data, &size, NULL, NULL), KILN_OK);
    assert_int_equal(kt_faultfs_hits(), 5);
    assert_int_equal(size, 10);
    assert_memory_equal(data, "0123456789", 11);
    free(data);
}

static void a_read_error_is_not_an_end_of_file(void **state)
{
    kiln_diag diag = KILN_DIAG_INIT;
    char *path = kt_at(*state, "a");
    void *data;
    size_t size;
    kt_file_write(path, "0123456789", 10);
    kt_faultfs_set(*state, "read:1:short;read:2:EIO");
    assert_int_equal(kn_file_read(path, 10, true, &data, &size, NULL, &diag), KILN_E_IO);
    assert_int_equal(diag.vendor_code, EIO);
    assert_null(data);
    kiln_diag_clear(&diag);
}

static void C2_a_stale_handle_is_a_miss(void **state)
{
    char *path = kt_at(*state, "a");
    void *data;
    size_t size;
    kt_file_write(path, "0123456789", 10);
    kt_faultfs_set(*state, "open:1:ESTALE");
    assert_int_equal(kn_file_read(path, 10, true, &data, &size, NULL, NULL), KILN_MISS);
    kt_faultfs_set(*state, "read:1:ESTALE");
    assert_int_equal(kn_file_read(path, 10, true, &data, &size, NULL, NULL), KILN_MISS);
    assert_null(data);
    kt_faultfs_set(*state, "unlink:1:ESTALE");
    assert_int_equal(kn_file_remove(path, NULL), KILN_MISS);
}

static void records_survive_short_transfers(void **state)
{
    char *path = kt_at(*state, "a");
    char data[8];
    kn_file *file;
    kt_faultfs_set(*state, "open:1:EINTR;write:1:short;write:2:EINTR;read:1:short;read:2:EINTR");
    assert_int_equal(kn_file_open(path, true, &file, NULL), KILN_OK);
    assert_int_equal(kn_file_write_at(file, 0, "01234567", 8), KILN_OK);
    assert_int_equal(kn_file_read_at(file, 0, data, 8), KILN_OK);
    assert_memory_equal(data, "01234567", 8);
    assert_int_equal(kt_faultfs_hits(), 5);
    kt_faultfs_set(*state, "write:1:ENOSPC;read:1:EIO");
    assert_int_equal(kn_file_write_at(file, 0, "0", 1), KILN_E_IO);
    assert_int_equal(kn_file_read_at(file, 0, data, 1), KILN_E_IO);
    kn_file_close(file);
}

static void a_parent_that_vanishes_is_made_again(void **state)
{
    char *path = kt_at(*state, "a/b/c");
    kt_faultfs_set(*state, "mkdir:4:ENOENT"); /* c, a, then b while a is gone */
    assert_int_equal(kn_file_make_dir(path, NULL), KILN_OK);
    assert_true(kt_file_exists(path));
    path = kt_at(*state, "x/y");
    kt_faultfs_set(*state, "mkdir:*:ENOENT"); /* and not for ever */
    assert_int_equal(kn_file_make_dir(path, NULL), KILN_E_IO);
    kt_faultfs_set(*state, "mkdir:*:EROFS");
    assert_int_equal(kn_file_make_dir(*state, NULL), KILN_OK); /* there already */
}

static kiln_status count_names(void *user, const char *name)
{
    (*(int *)user)++;
    return KILN_OK;
}

static void S4_dirs_that_cannot_be_read_are_said(void **state)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kn_file_facts facts;
    int count = 0;
    char *path = kt_at(*state, "a");
    assert_int_equal(kn_file_make_dir(path, NULL), KILN_OK);
    kt_faultfs_set(*state, "open:1:EACCES;open:2:ESTALE;rmdir:1:EACCES");
    assert_int_equal(kn_file_list(path, count_names, &count, &diag), KILN_E_IO);
    assert_int_equal(diag.vendor_code, EACCES);
    assert_int_equal(kn_file_list(path, count_names, &count, &diag), KILN_MISS);
    assert_int_equal(kn_file_list(path, count_names, &count, &diag), KILN_OK);
    assert_int_equal(count, 0);
    assert_int_equal(kn_file_remove_dir(path), KILN_E_IO);
    assert_int_equal(kn_file_remove_dir(path), KILN_OK);
    assert_int_equal(symlink("a", path), 0); /* a loop */
    assert_int_equal(kn_file_stat(path, true, &facts, &diag), KILN_E_IO);
    assert_int_equal(diag.vendor_code, ELOOP);
    kiln_diag_clear(&diag);
}

static void a_file_system_without_locks_is_unsupported(void **state)
{
    static const struct {
        const char *rule;
        kiln_status status;
    } rows[] = {
        {"lock:1:ENOLCK", KILN_E_UNSUPPORTED},
        {"lock:1:EOPNOTSUPP", KILN_E_UNSUPPORTED},
        {"lock:1:ENOSYS", KILN_E_UNSUPPORTED},
        {"lock:1:EINVAL", KILN_E_UNSUPPORTED},
        {"lock:1:EAGAIN", KILN_E_BUSY},
        {"lock:1:EACCES", KILN_E_BUSY},
        {"lock:1:EIO", KILN_E_IO},
        {"lock:1:EINTR", KILN_OK},
    };
    char *path = kt_at(*state, "lock");
    kn_lock_file *file;
    kt_faultfs_set(*state, "open:1:EINTR");
    assert_int_equal(kn_lock_file_open(path, &file, NULL), KILN_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kt_faultfs_set(*state, rows[i].rule);
        assert_int_equal(kn_lock_try(file, 5), rows[i].status);
        assert_int_equal(kt_faultfs_hits(), 1);
    }
    kn_lock_file_close(file);
    kiln_diag diag = KILN_DIAG_INIT;
    kt_faultfs_set(*state, "open:1:EROFS");
    assert_int_equal(kn_lock_file_open(path, &file, &diag), KILN_E_IO);
    assert_int_equal(diag.vendor_code, EROFS);
    assert_null(file);
    kiln_diag_clear(&diag);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(reading_survives_short_reads_and_interruptions),
        TEST(a_read_error_is_not_an_end_of_file),
        TEST(C2_a_stale_handle_is_a_miss),
        TEST(records_survive_short_transfers),
        TEST(a_parent_that_vanishes_is_made_again),
        TEST(S4_dirs_that_cannot_be_read_are_said),
        TEST(a_file_system_without_locks_is_unsupported),
    };
    if (!kt_faultfs_available()) {
        (void)puts("skipped: the fault injector is not preloaded (sanitizer build?)");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
