/* Files: reading whole, facts, shared records. */
#include "sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/cmocka.h"
#include "support/failalloc.h"
#include "support/tmpdir.h"

static void a_file_is_read_whole_with_its_facts(void **state)
{
    char *path = kt_at(*state, "a");
    void *data;
    size_t size;
    kn_file_facts facts;
    kt_file_write(path, "he\0lo", 5);
    assert_int_equal(kn_file_read(path, 5, true, &data, &size, &facts, NULL), KILN_OK);
    assert_int_equal(size, 5);
    assert_memory_equal(data, "he\0lo", 6);
    free(data);
    kn_file_facts again;
    assert_int_equal(kn_file_stat(path, true, &again, NULL), KILN_OK);
    assert_memory_equal(&facts, &again, sizeof facts);
    assert_int_equal(facts.kind, KN_FILE_REGULAR);
    assert_int_equal(facts.size, 5);
    assert_int_equal(facts.owner, geteuid());
    assert_true(facts.inode != 0 && facts.mtime_ns > 0 && facts.ctime_ns > 0);

    kt_file_write(path, "", 0);
    assert_int_equal(kn_file_read(path, 0, true, &data, &size, NULL, NULL), KILN_OK);
    assert_int_equal(size, 0);
    assert_string_equal(data, "");
    free(data);
}

static void a_file_is_read_behind_room_for_its_reader(void **state)
{
    char *path = kt_at(*state, "a");
    static const size_t before[] = {1, 63, 64, 96, 1000};
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        unsigned char *memory = NULL;
        size_t at = 0, size = 0;
        kt_file_write(path, "hello", 5);
        assert_int_equal(kn_file_read_behind(NULL, path, 5, NULL, before[i], (void **)&memory, &at,
                                             &size, NULL, NULL),
                         KILN_OK);
        assert_int_equal(size, 5);
        assert_true(at >= before[i]);
        assert_int_equal((uintptr_t)(memory + at) % 64, 0);
        memset(memory, 0xff, at);
        assert_string_equal((char *)memory + at, "hello");
        free(memory);
        assert_int_equal(kn_file_read_behind(NULL, path, 4, NULL, before[i], (void **)&memory, &at,
                                             &size, NULL, NULL),
                         KILN_E_INVALID);
        assert_null(memory);
    }
}

static void a_dir_held_open_stays_what_it_was(void **state)
{
    kn_held_dir *dir = NULL;
    char *memory = NULL;
    size_t at = 0, size = 0;
    char *here = kt_at(*state, "here"), *there = kt_at(*state, "there");
    char *file = kt_at(here, "a"), *moved = kt_at(there, "a");
    assert_int_equal(kn_held_dir_open(here, &dir, NULL), KILN_MISS);
    assert_int_equal(mkdir(here, 0700), 0);
    kt_file_write(file, "hello", 5);
    assert_int_equal(kn_held_dir_open(file, &dir, NULL), KILN_MISS);
    assert_int_equal(symlink(here, there), 0);
    assert_int_not_equal(kn_held_dir_open(there, &dir, NULL), KILN_OK);
    assert_int_equal(unlink(there), 0);
    assert_int_equal(kn_held_dir_open(here, &dir, NULL), KILN_OK);
    assert_int_equal(rename(here, there), 0);
    assert_int_equal(
        kn_file_read_behind(dir, "a", 9, NULL, 8, (void **)&memory, &at, &size, NULL, NULL),
        KILN_OK);
    assert_string_equal(memory + at, "hello");
    free(memory);
    assert_int_equal(unlink(moved), 0);
    assert_int_equal(rmdir(there), 0);
    assert_int_equal(
        kn_file_read_behind(dir, "a", 9, NULL, 8, (void **)&memory, &at, &size, NULL, NULL),
        KILN_MISS);
    kn_held_dir_close(dir);
    kn_held_dir_close(NULL);
}

static void what_is_not_there_is_a_miss_without_words(void **state)
{
    kiln_diag diag = KILN_DIAG_INIT;
    char *path = kt_at(*state, "none");
    char *below = kt_at(*state, "file/none");
    char *file = kt_at(*state, "file");
    const char *const paths[] = {path, below};
    kt_file_write(file, "x", 1);
    for (size_t i = 0; i < 2; i++) {
        void *data = &diag;
        size_t size = 9;
        kn_file_facts facts;
        kn_file *opened;
        assert_int_equal(kn_file_read(paths[i], 10, false, &data, &size, &facts, &diag), KILN_MISS);
        assert_null(data);
        assert_int_equal(size, 0);
        assert_int_equal(kn_file_stat(paths[i], true, &facts, &diag), KILN_MISS);
        assert_int_equal(kn_file_remove(paths[i], &diag), KILN_MISS);
        assert_int_equal(kn_file_touch(paths[i]), KILN_MISS);
        assert_int_equal(kn_file_open(paths[i], false, &opened, &diag), KILN_MISS);
        assert_null(opened);
    }
    assert_int_equal(diag.status, KILN_OK);
}

static void only_regular_files_within_the_limit_are_read(void **state)
{
    kiln_diag diag = KILN_DIAG_INIT;
    char *path = kt_at(*state, "a");
    char *link = kt_at(*state, "link");
    char *pipe = kt_at(*state, "pipe");
    void *data;
    size_t size;
    kt_file_write(path, "12345", 5);
    assert_int_equal(symlink("a", link), 0);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_int_equal(kn_file_read(path, 4, true, &data, &size, NULL, &diag), KILN_E_INVALID);
    assert_non_null(strstr(diag.why, "5 bytes"));
    assert_int_equal(kn_file_read(*state, 100, true, &data, &size, NULL, &diag), KILN_E_INVALID);
    assert_int_equal(kn_file_read(pipe, 100, true, &data, &size, NULL, &diag), KILN_E_INVALID);
    assert_int_equal(kn_file_read(link, 100, true, &data, &size, NULL, &diag), KILN_E_INVALID);
    assert_non_null(strstr(diag.why, "link"));
    assert_null(data);
    assert_int_equal(kn_file_read(link, 100, false, &data, &size, NULL, &diag), KILN_OK);
    free(data);
    kn_file_facts facts;
    assert_int_equal(kn_file_stat(link, false, &facts, NULL), KILN_OK);
    assert_int_equal(facts.kind, KN_FILE_LINK);
    assert_int_equal(kn_file_stat(pipe, false, &facts, NULL), KILN_OK);
    assert_int_equal(facts.kind, KN_FILE_OTHER);
    assert_int_equal(kn_file_stat(*state, false, &facts, NULL), KILN_OK);
    assert_int_equal(facts.kind, KN_FILE_DIR);
    kiln_diag_clear(&diag);
}

static void S9_names_may_be_long_and_of_any_script(void **state)
{
    kiln_diag diag = KILN_DIAG_INIT;
    char *path = kt_at(*state, "\xe7\xaa\xaf \xd0\xbf\xd0\xb5\xd1\x87\xd1\x8c \xc3\xa4");
    void *data;
    size_t size;
    kt_file_write(path, "x", 1);
    assert_int_equal(kn_file_read(path, 9, true, &data, &size, NULL, &diag), KILN_OK);
    free(data);

    char name[300];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    path = kt_at(*state, name);
    assert_int_equal(kn_file_read(path, 9, true, &data, &size, NULL, &diag), KILN_E_IO);
    assert_int_equal(diag.vendor_code, ENAMETOOLONG);
    assert_true(diag.what[0] != '\0' && diag.why[0] != '\0' && diag.fix[0] != '\0');
    kiln_diag_clear(&diag);
}

static void touch_changes_mtime_alone(void **state)
{
    const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    char *path = kt_at(*state, "a");
    struct stat facts;
    kt_file_write(path, "x", 1);
    assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
    assert_int_equal(kn_file_touch(path), KILN_OK);
    assert_int_equal(stat(path, &facts), 0);
    assert_int_equal(facts.st_atim.tv_sec, 1000);
    assert_true(facts.st_mtim.tv_sec > 1000);
}

static void remove_takes_files_not_dirs(void **state)
{
    kiln_diag diag = KILN_DIAG_INIT;
    char *path = kt_at(*state, "a");
    kt_file_write(path, "x", 1);
    assert_int_equal(kn_file_remove(path, &diag), KILN_OK);
    assert_false(kt_file_exists(path));
    assert_int_equal(kn_file_remove(*state, &diag), KILN_E_IO);
    assert_true(diag.vendor_code == EISDIR || diag.vendor_code == EPERM);
    kiln_diag_clear(&diag);
}

static void records_are_read_and_written_in_place(void **state)
{
    char *path = kt_at(*state, "stats");
    char *link = kt_at(*state, "link");
    kn_file *file;
    char data[4];
    struct stat facts;
    mode_t old = umask(0);
    assert_int_equal(kn_file_open(path, true, &file, NULL), KILN_OK);
    (void)umask(old);
    assert_int_equal(stat(path, &facts), 0);
    assert_int_equal(facts.st_mode & 07777, 0600);
    assert_int_equal(kn_file_read_at(file, 0, data, 4), KILN_MISS);
    assert_int_equal(kn_file_write_at(file, 10, "abcd", 4), KILN_OK);
    assert_int_equal(kn_file_read_at(file, 10, data, 4), KILN_OK);
    assert_memory_equal(data, "abcd", 4);
    assert_int_equal(kn_file_read_at(file, 11, data, 4), KILN_MISS);
    kn_file_close(file);
    assert_int_equal(kn_file_open(path, false, &file, NULL), KILN_OK);
    assert_int_equal(kn_file_read_at(file, 10, data, 4), KILN_OK);
    assert_int_equal(kn_file_write_at(file, 10, "x", 1), KILN_E_IO);
    kn_file_close(file);
    kn_file_close(NULL);

    kiln_diag diag = KILN_DIAG_INIT;
    assert_int_equal(symlink("stats", link), 0);
    assert_int_equal(kn_file_open(link, true, &file, &diag), KILN_E_IO);
    assert_int_equal(diag.vendor_code, ELOOP);
    assert_int_equal(kn_file_open(*state, false, &file, &diag), KILN_E_INVALID);
    kiln_diag_clear(&diag);
}

static bool read_once(void *user)
{
    void *data;
    size_t size;
    kn_file *file;
    kiln_status status = kn_file_read(user, 100, true, &data, &size, NULL, NULL);
    free(data);
    if (status == KILN_OK) {
        status = kn_file_open(user, true, &file, NULL);
        kn_file_close(file);
    }
    assert_true(status == KILN_OK || status == KILN_E_NOMEM);
    return status == KILN_OK;
}

static void want_of_memory_is_said(void **state)
{
    char *path = kt_at(*state, "a");
    kt_file_write(path, "x", 1);
    assert_int_equal(kt_failalloc_each(read_once, path), 2);
}

int main(void)
{
#define TEST(f) kt_dir_test(f)
    const struct CMUnitTest tests[] = {
        TEST(a_file_is_read_whole_with_its_facts),
        TEST(a_file_is_read_behind_room_for_its_reader),
        TEST(a_dir_held_open_stays_what_it_was),
        TEST(what_is_not_there_is_a_miss_without_words),
        TEST(only_regular_files_within_the_limit_are_read),
        TEST(S9_names_may_be_long_and_of_any_script),
        TEST(touch_changes_mtime_alone),
        TEST(remove_takes_files_not_dirs),
        TEST(records_are_read_and_written_in_place),
        TEST(want_of_memory_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
