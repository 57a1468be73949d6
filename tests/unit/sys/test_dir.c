/* Directories. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/cmocka.h"
#include "support/failalloc.h"
#include "support/tmpdir.h"
#include "sys/dir.h"

static void all_parents_are_made_private(void **state)
{
    char *path = kt_at(*state, "a//b/c/");
    char *parent = kt_at(*state, "a");
    struct stat facts;
    mode_t old = umask(0);
    assert_int_equal(kn_file_make_dir(path, NULL), KILN_OK);
    (void)umask(old);
    assert_int_equal(stat(path, &facts), 0);
    assert_int_equal(facts.st_mode & 07777, 0700);
    assert_int_equal(stat(parent, &facts), 0);
    assert_int_equal(facts.st_mode & 07777, 0700);
    assert_int_equal(kn_file_make_dir(path, NULL), KILN_OK);
    assert_int_equal(kn_file_make_dir("/", NULL), KILN_OK);
    assert_int_equal(kn_file_make_dir("", NULL), KILN_E_INVALID);
}

static void E15_a_umask_takes_nothing_of_the_owners(void **state)
{
    static const mode_t masks[] = {0177, 0277, 0111, 0777};
    char *path = kt_at(*state, "a/b");
    char *parent = kt_at(*state, "a");
    for (size_t i = 0; i < sizeof(masks) / sizeof(*masks); i++) {
        struct stat facts;
        mode_t old = umask(masks[i]);
        const kiln_status status =
            i % 2 == 0 ? kn_file_make_dir(path, NULL) : kn_file_make_new_dir(path, NULL);
        (void)umask(old);
        assert_int_equal(status, KILN_OK);
        assert_int_equal(stat(path, &facts), 0);
        assert_int_equal(facts.st_mode & 07777, 0700);
        assert_int_equal(stat(parent, &facts), 0);
        assert_int_equal(facts.st_mode & 07777, 0700);
        assert_int_equal(rmdir(path), 0);
        assert_int_equal(rmdir(parent), 0);
    }
}

static void S6_a_new_dir_is_nobody_elses(void **state)
{
    char *path = kt_at(*state, "missing/new");
    char *link = kt_at(*state, "missing/link");
    struct stat facts;
    assert_int_equal(kn_file_make_new_dir(path, NULL), KILN_OK);
    assert_int_equal(stat(path, &facts), 0);
    assert_int_equal(facts.st_mode & 07777, 0700);
    assert_int_equal(kn_file_make_new_dir(path, NULL), KILN_E_BUSY);
    assert_int_equal(symlink("nowhere", link), 0);
    assert_int_equal(kn_file_make_new_dir(link, NULL), KILN_E_BUSY);
    assert_int_equal(unlink(link), 0);
    kt_file_write(link, "x", 1);
    assert_int_equal(kn_file_make_new_dir(link, NULL), KILN_E_BUSY);
}

static void a_file_in_the_way_is_named(void **state)
{
    kiln_diag diag = KILN_DIAG_INIT;
    char *file = kt_at(*state, "file");
    char *below = kt_at(*state, "file/x/y");
    kt_file_write(file, "x", 1);
    assert_int_equal(kn_file_make_dir(file, &diag), KILN_E_IO);
    assert_int_equal(diag.vendor_code, ENOTDIR);
    assert_non_null(strstr(diag.what, file));
    assert_int_equal(kn_file_make_dir(below, &diag), KILN_E_IO);
    assert_int_equal(diag.vendor_code, ENOTDIR);
    kiln_diag_clear(&diag);
}

static void only_an_empty_dir_is_removed(void **state)
{
    char *path = kt_at(*state, "a");
    char *file = kt_at(*state, "a/f");
    assert_int_equal(kn_file_make_dir(path, NULL), KILN_OK);
    kt_file_write(file, "x", 1);
    assert_int_equal(kn_file_remove_dir(path), KILN_E_BUSY);
    assert_int_equal(kn_file_remove(file, NULL), KILN_OK);
    assert_int_equal(kn_file_remove_dir(path), KILN_OK);
    assert_int_equal(kn_file_remove_dir(path), KILN_MISS);
}

typedef struct names {
    size_t count;
    unsigned seen;
    size_t stop_at;
} names;

static kiln_status note(void *user, const char *name)
{
    names *n = user;
    assert_int_equal(strlen(name), 1);
    n->seen |= 1u << (name[0] - 'a');
    n->count++;
    return n->count == n->stop_at ? KILN_E_CANCELLED : KILN_OK;
}

static void listing_visits_each_name_once(void **state)
{
    static const char *const all[] = {"a", "b", "c", "d"};
    for (size_t i = 0; i < 4; i++) {
        char *path = kt_at(*state, all[i]);
        kt_file_write(path, "", 0);
    }
    names n = {0};
    assert_int_equal(kn_file_list(*state, note, &n, NULL), KILN_OK);
    assert_int_equal(n.count, 4);
    assert_int_equal(n.seen, 15);
    n = (names){.stop_at = 2};
    assert_int_equal(kn_file_list(*state, note, &n, NULL), KILN_E_CANCELLED);
    assert_int_equal(n.count, 2);

    char *none = kt_at(*state, "none");
    char *file = kt_at(*state, "a");
    assert_int_equal(kn_file_list(none, note, &n, NULL), KILN_MISS);
    assert_int_equal(kn_file_list(file, note, &n, NULL), KILN_MISS);
}

static void *make_many(void *user)
{
    for (int i = 0; i < 200; i++) {
        char *path = kt_at(user, "x/y/z");
        kiln_status status = kn_file_make_dir(path, NULL);
        assert_true(status == KILN_OK || status == KILN_E_IO);
        (void)kn_file_remove_dir(path);
    }
    return NULL;
}

static void C1_makers_and_removers_may_race(void **state)
{
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, make_many, *state), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    char *path = kt_at(*state, "x/y/z");
    assert_int_equal(kn_file_make_dir(path, NULL), KILN_OK);
}

static bool make_deep(void *user)
{
    char *path = user;
    kiln_status status = kn_file_make_dir(path, NULL);
    assert_true(status == KILN_OK || status == KILN_E_NOMEM);
    return status == KILN_OK;
}

static void want_of_memory_is_said(void **state)
{
    char *path = kt_at(*state, "p/q");
    assert_int_equal(kt_failalloc_each(make_deep, path), 1);
}

static void names_are_looked_at_in_an_opened_dir(void **state)
{
    char *inside = kt_at(*state, "a/x");
    char *dir = kt_at(*state, "a");
    char *link = kt_at(*state, "a/link");
    kn_file_facts facts, same;
    kn_dir opened;
    assert_int_equal(kn_dir_open(dir, &opened), KILN_MISS);
    assert_int_equal(kn_file_make_dir(dir, NULL), KILN_OK);
    kt_file_write(inside, "four", 4);
    assert_int_equal(symlink("x", link), 0);
    assert_int_equal(kn_dir_open(inside, &opened), KILN_MISS); /* no directory */
    assert_int_equal(kn_dir_open(dir, &opened), KILN_OK);
    assert_int_equal(kn_dir_stat(&opened, "x", true, &facts), KILN_OK);
    assert_int_equal(kn_file_stat(inside, true, &same, NULL), KILN_OK);
    assert_int_equal(facts.inode, same.inode);
    assert_int_equal(facts.mtime_ns, same.mtime_ns);
    assert_int_equal(facts.size, 4);
    assert_int_equal(kn_dir_stat(&opened, "link", true, &facts), KILN_OK);
    assert_int_equal(facts.kind, KN_FILE_REGULAR);
    assert_int_equal(kn_dir_stat(&opened, "link", false, &facts), KILN_OK);
    assert_int_equal(facts.kind, KN_FILE_LINK);
    assert_int_equal(kn_dir_stat(&opened, "y", true, &facts), KILN_MISS);
    assert_int_equal(kn_dir_stat(&opened, "x/y", true, &facts), KILN_MISS);
    /* What is in it is looked up each time. */
    assert_int_equal(unlink(inside), 0);
    assert_int_equal(kn_dir_stat(&opened, "x", true, &facts), KILN_MISS);
    assert_int_equal(kn_dir_stat(&opened, "link", true, &facts), KILN_MISS);
    kn_dir_close(&opened);
    kn_dir_close(&opened); /* nothing is left to close */
}

int main(void)
{
#define TEST(f) kt_dir_test(f)
    const struct CMUnitTest tests[] = {
        TEST(all_parents_are_made_private),         TEST(E15_a_umask_takes_nothing_of_the_owners),
        TEST(S6_a_new_dir_is_nobody_elses),         TEST(a_file_in_the_way_is_named),
        TEST(only_an_empty_dir_is_removed),         TEST(listing_visits_each_name_once),
        TEST(C1_makers_and_removers_may_race),      TEST(want_of_memory_is_said),
        TEST(names_are_looked_at_in_an_opened_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
