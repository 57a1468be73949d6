/* Files under Windows: names that are not ASCII, paths beyond 260 characters, files that others
 * keep open, and what happens to those who have them. */
#include <stdio.h>
#include <string.h>
#include <windows.h>

#include "support/cmocka.h"
#include "support/tmpdir.h"
#include "sys/file.h"
#include "sys/map_file.h"
#include "sys/publish.h"
#include "sys/thread.h"
#include "sys/windows/wide.h"

static void publish_text(const char *tmp, const char *path, const char *text, kiln_status expected)
{
    kn_publish publish;
    assert_int_equal(kn_publish_begin(&publish, tmp, path, NULL), KILN_OK);
    kn_publish_write(&publish, text, strlen(text));
    assert_int_equal(kn_publish_commit(&publish, false, NULL), expected);
}

static void assert_holds(const char *path, const char *text)
{
    size_t size = 0;
    char *data = kt_file_read(path, &size);
    assert_non_null(data);
    assert_string_equal(data, text);
    assert_int_equal(size, strlen(text));
    free(data);
}

static HANDLE open_with(const char *path, DWORD access, DWORD share)
{
    wchar_t *wide = kn_wide_path(path);
    HANDLE handle = CreateFileW(wide, access, share, NULL, OPEN_EXISTING, 0, NULL);
    assert_true(handle != INVALID_HANDLE_VALUE);
    free(wide);
    return handle;
}

static kiln_status keep_name(void *user, const char *name)
{
    (void)snprintf(user, 128, "%s", name);
    return KILN_OK;
}

static void names_are_utf8(void **state)
{
    static const char name[] = "\xe6\xb5\x8b\xe8\xaf\x95 \xc3\xa9 %d \xf0\x9f\x94\xa5.kiln";
    char found[128] = "";
    kn_file_facts facts;
    char *dir = kt_at(*state, "\xd0\xbf\xd0\xb0\xd0\xbf\xd0\xba\xd0\xb0");
    char *path = kn_path_join(dir, name);
    publish_text(*state, path, "text", KILN_OK);
    assert_holds(path, "text");
    assert_int_equal(kn_file_list(dir, keep_name, found, NULL), KILN_OK);
    assert_string_equal(found, name);
    assert_int_equal(kn_file_stat(path, false, &facts, NULL), KILN_OK);
    assert_int_equal(facts.size, 4);
    char *whole = kn_path_resolve(path);
    assert_non_null(whole);
    assert_string_equal(kn_path_name(whole), name);
    free(whole);
    assert_int_equal(kn_file_stat("C:/not \xff utf-8", false, &facts, NULL), KILN_E_IO);
    assert_int_equal(kn_file_remove(path, NULL), KILN_OK);
    assert_int_equal(kn_file_remove(path, NULL), KILN_MISS);
    assert_int_equal(kn_file_remove_dir(dir), KILN_OK);
    free(path);
}

static void paths_may_be_long(void **state)
{
    char part[101];
    memset(part, 'x', 100);
    part[100] = '\0';
    char *path = kt_path(*state, part);
    for (int i = 0; i < 5; i++) {
        char *longer = kn_path_join(path, part);
        free(path);
        path = longer;
    }
    char *file = kn_path_join(path, "file");
    assert_int_equal(kn_file_make_dir(path, NULL), KILN_OK);
    publish_text(path, file, "deep", KILN_OK);
    assert_holds(file, "deep");
    assert_int_equal(kt_file_count(*state), 1);
    free(file);
    free(path);
}

/* A reader has the file as kiln opens it: it keeps what it has, and the new file is there. */
static void a_file_is_replaced_and_removed_under_its_readers(void **state)
{
    char *path = kt_at(*state, "file");
    kn_map_file map;
    publish_text(*state, path, "old", KILN_OK);
    assert_int_equal(kn_map_file_open(path, &map, NULL), KILN_OK);
    publish_text(*state, path, "new", KILN_OK);
    assert_holds(path, "new");
    assert_memory_equal(map.data, "old", 3);
    kn_map_file_close(&map);

    kn_file *file = NULL;
    char byte = 0;
    assert_int_equal(kn_file_open(path, false, &file, NULL), KILN_OK);
    assert_int_equal(kn_file_remove(path, NULL), KILN_OK);
    assert_int_equal(kn_file_read_at(file, 0, &byte, 1), KILN_OK);
    assert_int_equal(byte, 'n');
    kn_file_close(file);
    assert_false(kt_file_exists(path));
}

typedef struct holder {
    HANDLE handle;
    DWORD ms;
} holder;

static void let_go_later(void *user)
{
    holder *h = user;
    Sleep(h->ms);
    (void)CloseHandle(h->handle);
}

/* As a virus scanner does it: nobody else may open the file for a moment. */
static void a_sharing_violation_is_waited_out(void **state)
{
    char *path = kt_at(*state, "file");
    kn_thread *thread = NULL;
    void *data = NULL;
    size_t size = 0;
    publish_text(*state, path, "old", KILN_OK);

    holder scanner = {open_with(path, GENERIC_READ, 0), 5};
    assert_int_equal(kn_thread_start(let_go_later, &scanner, &thread, NULL), KILN_OK);
    publish_text(*state, path, "new", KILN_OK);
    kn_thread_join(thread);
    assert_holds(path, "new");

    scanner = (holder){open_with(path, GENERIC_READ, 0), 5};
    assert_int_equal(kn_thread_start(let_go_later, &scanner, &thread, NULL), KILN_OK);
    assert_int_equal(kn_file_remove(path, NULL), KILN_OK);
    kn_thread_join(thread);

    publish_text(*state, path, "held", KILN_OK);
    HANDLE held = open_with(path, GENERIC_READ, 0);
    assert_int_equal(kn_file_read(path, 100, false, &data, &size, NULL, NULL), KILN_E_IO);
    assert_null(data);
    (void)CloseHandle(held);
    assert_holds(path, "held");
}

/* Nothing is left behind where the wait has no success, and the old file is whole. */
static void a_file_that_stays_held_is_kept(void **state)
{
    char *path = kt_at(*state, "file");
    kiln_diag diag = KILN_DIAG_INIT;
    kn_publish publish;
    publish_text(*state, path, "old", KILN_OK);
    HANDLE held = open_with(path, GENERIC_READ, 0);
    assert_int_equal(kn_publish_begin(&publish, *state, path, NULL), KILN_OK);
    kn_publish_write(&publish, "new", 3);
    assert_int_equal(kn_publish_commit(&publish, false, &diag), KILN_E_IO);
    assert_int_not_equal(diag.vendor_code, 0);
    kiln_diag_clear(&diag);
    (void)CloseHandle(held);
    assert_holds(path, "old");
    assert_int_equal(kt_file_count(*state), 1);
}

static void dirs_are_made_kept_and_removed(void **state)
{
    char *dir = kt_at(*state, "a\\b/c/");
    char *blocked = kt_at(*state, "file/below");
    char *file = kt_at(*state, "file");
    uint64_t left = 0, size = 0;
    assert_int_equal(kn_file_make_dir(dir, NULL), KILN_OK);
    assert_int_equal(kn_file_make_dir(dir, NULL), KILN_OK);
    kt_file_write(file, "x", 1);
    assert_int_equal(kn_file_make_dir(file, NULL), KILN_E_IO);
    assert_int_equal(kn_file_make_dir(blocked, NULL), KILN_E_IO);
    assert_int_equal(kn_file_remove_dir(file), KILN_MISS);
    assert_int_equal(kn_file_remove_dir(*state), KILN_E_BUSY);
    assert_int_equal(kn_file_remove(dir, NULL), KILN_E_IO); /* not by the wrong call */
    assert_int_equal(kn_file_writable(*state, NULL), KILN_OK);
    assert_int_equal(kn_file_space(*state, &left, &size), KILN_OK);
    assert_true(size > 0 && left <= size);
}

static void a_touch_moves_the_stamp(void **state)
{
    char *path = kt_at(*state, "file");
    kn_file_facts before, after;
    struct timespec old[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000, .tv_nsec = 500}};
    kt_file_write(path, "x", 1);
    assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
    assert_int_equal(kn_file_stat(path, false, &before, NULL), KILN_OK);
    assert_true(before.mtime_ns == INT64_C(1000000000000000500));
    assert_int_equal(kn_file_touch(path), KILN_OK);
    assert_int_equal(kn_file_stat(path, false, &after, NULL), KILN_OK);
    assert_true(after.mtime_ns > before.mtime_ns);
    assert_true(after.inode == before.inode && after.device == before.device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        kt_dir_test(names_are_utf8),
        kt_dir_test(paths_may_be_long),
        kt_dir_test(a_file_is_replaced_and_removed_under_its_readers),
        kt_dir_test(a_sharing_violation_is_waited_out),
        kt_dir_test(a_file_that_stays_held_is_kept),
        kt_dir_test(dirs_are_made_kept_and_removed),
        kt_dir_test(a_touch_moves_the_stamp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
