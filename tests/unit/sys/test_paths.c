/* Where the cache is, and whether it may be used. */
#include "sys/paths.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/cmocka.h"
#include "support/failalloc.h"
#include "support/tmpdir.h"
#include "sys/file.h"

enum { STRANGER = 12345 };

static int begin(void **state)
{
    (void)unsetenv("KILN_CACHE_DIR");
    (void)unsetenv("XDG_CACHE_HOME");
    (void)unsetenv("HOME");
    (void)unsetenv("TMPDIR");
    return kt_tmpdir_setup(state);
}

static void assert_root(const char *expected)
{
    kiln_diag diag = KILN_DIAG_INIT;
    char *path;
    assert_int_equal(kn_paths_cache_root(&path, &diag), KILN_OK);
    assert_string_equal(path, expected);
    free(path);
    kiln_diag_clear(&diag);
}

static void the_root_follows_the_order_of_variables(void **state)
{
    char *home = kt_at(*state, "home");
    char *at_home = kt_at(*state, "home/.cache/kiln");
    assert_int_equal(mkdir(home, 0700), 0);
    (void)setenv("HOME", home, 1);
    assert_root(at_home);
    (void)setenv("XDG_CACHE_HOME", "", 1);
    assert_root(at_home);
    (void)setenv("XDG_CACHE_HOME", "relative", 1); /* ignored, says the specification */
    assert_root(at_home);
    (void)setenv("XDG_CACHE_HOME", "/xdg/", 1);
    assert_root("/xdg/kiln");
    (void)setenv("KILN_CACHE_DIR", "", 1);
    assert_root("/xdg/kiln");
    (void)setenv("KILN_CACHE_DIR", "/own place", 1);
    assert_root("/own place");
}

static void a_relative_cache_dir_is_an_error(void **state)
{
    kiln_diag diag = KILN_DIAG_INIT;
    char *path = *state;
    (void)setenv("KILN_CACHE_DIR", "cache", 1);
    assert_int_equal(kn_paths_cache_root(&path, &diag), KILN_E_INVALID);
    assert_null(path);
    assert_non_null(strstr(diag.what, "KILN_CACHE_DIR"));
    assert_non_null(strstr(diag.why, "\"cache\""));
    assert_true(diag.fix[0] != '\0');
    kiln_diag_clear(&diag);
}

static void S4_without_a_home_the_registered_or_the_temporary_dir_serves(void **state)
{
    char expected[4096];
    struct stat facts;
    const struct passwd *entry = getpwuid(geteuid());
    bool registered = entry != NULL && stat(entry->pw_dir, &facts) == 0 && S_ISDIR(facts.st_mode) &&
                      facts.st_uid == geteuid();
    (void)setenv("TMPDIR", *state, 1);
    if (registered) {
        (void)snprintf(expected, sizeof expected, "%s/.cache/kiln", entry->pw_dir);
    } else {
        (void)snprintf(expected, sizeof expected, "%s/kiln-%lu", (char *)*state,
                       (unsigned long)geteuid());
    }
    assert_root(expected);
    (void)setenv("HOME", "/nonexistent", 1);
    assert_root(expected);
    (void)setenv("HOME", "relative", 1);
    assert_root(expected);
}

static void S8_root_leaves_the_home_of_a_user_alone(void **state)
{
    if (geteuid() != 0) {
        skip(); /* only root can give a directory away */
    }
    char *home = kt_at(*state, "home");
    char *path;
    assert_int_equal(mkdir(home, 0755), 0);
    assert_int_equal(chown(home, STRANGER, STRANGER), 0);
    (void)setenv("HOME", home, 1);
    assert_int_equal(kn_paths_cache_root(&path, NULL), KILN_OK);
    assert_null(strstr(path, home));
    free(path);
}

static void the_root_is_made_private(void **state)
{
    char *root = kt_at(*state, "a/b/kiln");
    char *slashes = kt_at(*state, "a/b/kiln//./");
    struct stat facts;
    mode_t old = umask(0);
    assert_int_equal(kn_paths_claim_root(root, NULL), KILN_OK);
    (void)umask(old);
    assert_int_equal(stat(root, &facts), 0);
    assert_int_equal(facts.st_mode & 07777, 0700);
    assert_int_equal(kn_paths_claim_root(root, NULL), KILN_OK);
    assert_int_equal(kn_paths_claim_root(slashes, NULL), KILN_OK);
    assert_int_equal(kn_paths_claim_root("relative", NULL), KILN_E_UNAVAILABLE);
}

static void assert_refused(const char *root, const char *word)
{
    kiln_diag diag = KILN_DIAG_INIT;
    assert_int_equal(kn_paths_claim_root(root, &diag), KILN_E_UNAVAILABLE);
    assert_int_equal(diag.status, KILN_E_UNAVAILABLE);
    assert_non_null(strstr(diag.what, root));
    if (strstr(diag.why, word) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", word, diag.why);
    }
    assert_true(diag.fix[0] != '\0');
    kiln_diag_clear(&diag);
}

static void S6_a_root_that_others_can_write_to_is_refused(void **state)
{
    char *root = kt_at(*state, "kiln");
    kiln_diag diag = KILN_DIAG_INIT;
    assert_int_equal(mkdir(root, 0700), 0);
    assert_int_equal(chmod(root, 0770), 0);
    assert_refused(root, "group");
    assert_int_equal(chmod(root, 0777), 0);
    assert_refused(root, "world-writable");
    assert_int_equal(chmod(root, 01777), 0);
    assert_refused(root, "world-writable");
    (void)kn_paths_claim_root(root, &diag);
    assert_non_null(strstr(diag.fix, "chmod go-w"));
    kiln_diag_clear(&diag);
    assert_int_equal(chmod(root, 0755), 0);
    assert_int_equal(kn_paths_claim_root(root, NULL), KILN_OK);
}

static void S6_a_link_is_refused(void **state)
{
    char *real = kt_at(*state, "real");
    char *root = kt_at(*state, "kiln");
    char *slash = kt_at(*state, "kiln/");
    char *target = kt_at(*state, "nowhere");
    assert_int_equal(mkdir(real, 0700), 0);
    assert_int_equal(symlink("real", root), 0);
    assert_refused(root, "link");
    assert_int_equal(kn_paths_claim_root(slash, NULL), KILN_E_UNAVAILABLE);
    assert_int_equal(unlink(root), 0);
    assert_int_equal(symlink("nowhere", root), 0); /* not followed to make a directory there */
    assert_refused(root, "link");
    assert_false(kt_file_exists(target));
    assert_int_equal(unlink(root), 0);
    kt_file_write(root, "", 0);
    assert_int_equal(kn_paths_claim_root(root, NULL), KILN_E_UNAVAILABLE);
}

static void S6_what_a_stranger_owns_is_refused(void **state)
{
    char *root = kt_at(*state, "kiln");
    char *link = kt_at(*state, "link");
    char *own = kt_at(*state, "own");
    char *behind = kt_at(*state, "link/kiln");
    char *behind_own = kt_at(*state, "own/kiln");
    if (geteuid() == 0) { /* only root can give a directory away */
        assert_int_equal(mkdir(root, 0700), 0);
        assert_int_equal(chown(root, STRANGER, STRANGER), 0);
        assert_refused(root, "12345");
        assert_int_equal(symlink(".", link), 0);
        assert_int_equal(lchown(link, STRANGER, STRANGER), 0);
        kiln_diag diag = KILN_DIAG_INIT;
        assert_int_equal(kn_paths_claim_root(behind, &diag), KILN_E_UNAVAILABLE);
        assert_non_null(strstr(diag.why, "link"));
        kiln_diag_clear(&diag);
        assert_int_equal(chown(root, geteuid(), getegid()), 0);
    } else {
        assert_refused("/", "belongs to user 0");
        assert_int_equal(mkdir(root, 0700), 0);
    }
    assert_int_equal(symlink(".", own), 0); /* one's own link on the way is one's own business */
    assert_int_equal(kn_paths_claim_root(behind_own, NULL), KILN_OK);
}

static void S4_a_root_that_cannot_be_made_is_unavailable(void **state)
{
    char *file = kt_at(*state, "file");
    char *root = kt_at(*state, "file/kiln");
    kiln_diag diag = KILN_DIAG_INIT;
    kt_file_write(file, "", 0);
    assert_int_equal(kn_paths_claim_root(root, &diag), KILN_E_UNAVAILABLE);
    assert_int_equal(diag.status, KILN_E_UNAVAILABLE);
    assert_true(diag.vendor_code != 0);
    kiln_diag_clear(&diag);
    assert_int_equal(kn_paths_claim_root("/proc/kiln/cache", NULL), KILN_E_UNAVAILABLE);
}

static void other_places_are_found(void **state)
{
    char *path = kn_paths_temporary();
    assert_string_equal(path, "/tmp");
    free(path);
    (void)setenv("TMPDIR", "relative", 1);
    path = kn_paths_temporary();
    assert_string_equal(path, "/tmp");
    free(path);
    (void)setenv("TMPDIR", *state, 1);
    path = kn_paths_temporary();
    assert_string_equal(path, *state);
    free(path);

    char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(length > 0);
    self[length] = '\0';
    path = kn_paths_own_module();
    assert_string_equal(path, self);
    free(path);
}

static void programs_are_found_on_the_path_alone(void **state)
{
    char *tool = kt_at(*state, "kiln-test-tool");
    char *dir = kt_at(*state, "kiln-test-folder");
    char *plain = kt_at(*state, "kiln-test-plain");
    char list[4096];
    kt_file_write(tool, "#!/bin/sh\n", 10);
    kt_file_write(plain, "", 0);
    assert_int_equal(chmod(tool, 0700), 0);
    assert_int_equal(mkdir(dir, 0700), 0);
    char saved[4096];
    const char *before = getenv("PATH");
    (void)snprintf(saved, sizeof saved, "%s", before != NULL ? before : "/usr/bin:/bin");
    (void)snprintf(list, sizeof list, "::/nowhere:.:%s", (char *)*state);
    (void)setenv("PATH", list, 1);
    char *found = kn_paths_find_program("kiln-test-tool");
    assert_string_equal(found, tool);
    free(found);
    assert_null(kn_paths_find_program("kiln-test-folder"));
    assert_null(kn_paths_find_program("kiln-test-plain"));
    assert_null(kn_paths_find_program(""));
    found = kn_paths_find_program(tool);
    assert_string_equal(found, tool);
    free(found);
    assert_int_equal(chdir(*state), 0);
    (void)setenv("PATH", ":.:", 1); /* the working directory never counts */
    assert_null(kn_paths_find_program("kiln-test-tool"));
    assert_null(kn_paths_find_program("./kiln-test-tool"));
    assert_int_equal(chdir("/"), 0);
    (void)setenv("PATH", saved, 1);
}

/* The first of its name, by the order of the directories, however many are looked for. */
static void programs_are_found_in_one_walk(void **state)
{
    char *early = kt_at(*state, "early");
    char *late = kt_at(*state, "late");
    char list[8192];
    char path[4096];
    char saved[4096];
    const char *before = getenv("PATH");
    (void)snprintf(saved, sizeof saved, "%s", before != NULL ? before : "/usr/bin:/bin");
    (void)snprintf(list, sizeof list, "%s:/nowhere:%s:%s/:%s", early, early, late, early);
    assert_int_equal(mkdir(early, 0700), 0);
    assert_int_equal(mkdir(late, 0700), 0);
    (void)snprintf(path, sizeof path, "%s/kiln-a", late);
    kt_file_write(path, "#!/bin/sh\n", 10);
    assert_int_equal(chmod(path, 0700), 0);
    (void)snprintf(path, sizeof path, "%s/kiln-b", early);
    kt_file_write(path, "#!/bin/sh\necho\n", 15);
    assert_int_equal(chmod(path, 0700), 0);
    (void)setenv("PATH", list, 1);
    kn_program programs[] = {{.name = "kiln-a"},
                             {.name = "kiln-none"},
                             {.name = ""},
                             {.name = "kiln-b"},
                             {.name = "../late/kiln-a"}};
    kn_paths_find_programs(programs, 5);
    assert_string_equal(programs[3].path, path);
    assert_int_equal(programs[3].facts.size, 15);
    (void)snprintf(path, sizeof path, "%s/kiln-a", late);
    assert_string_equal(programs[0].path, path);
    assert_int_equal(programs[0].facts.size, 10);
    assert_null(programs[1].path);
    assert_null(programs[2].path);
    assert_null(programs[4].path);
    free(programs[0].path);
    free(programs[3].path);

    (void)snprintf(path, sizeof path, "%s/kiln-a", early); /* now it is earlier */
    kt_file_write(path, "#!/bin/sh\n", 10);
    assert_int_equal(chmod(path, 0700), 0);
    kn_paths_find_programs(programs, 1);
    assert_string_equal(programs[0].path, path);
    free(programs[0].path);
    (void)setenv("PATH", saved, 1);
}

static bool ask_for_root(void *user)
{
    char *path;
    kiln_status status = kn_paths_cache_root(&path, NULL);
    assert_int_equal(status == KILN_OK, path != NULL);
    free(path);
    if (status != KILN_OK) {
        assert_int_equal(status, KILN_E_NOMEM);
        return false;
    }
    return kn_paths_claim_root(user, NULL) == KILN_OK;
}

static void want_of_memory_is_said(void **state)
{
    assert_true(kt_failalloc_each(ask_for_root, *state) >= 2);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, kt_tmpdir_teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_root_follows_the_order_of_variables),
        TEST(a_relative_cache_dir_is_an_error),
        TEST(S4_without_a_home_the_registered_or_the_temporary_dir_serves),
        TEST(S8_root_leaves_the_home_of_a_user_alone),
        TEST(the_root_is_made_private),
        TEST(S6_a_root_that_others_can_write_to_is_refused),
        TEST(S6_a_link_is_refused),
        TEST(S6_what_a_stranger_owns_is_refused),
        TEST(S4_a_root_that_cannot_be_made_is_unavailable),
        TEST(other_places_are_found),
        TEST(programs_are_found_on_the_path_alone),
        TEST(programs_are_found_in_one_walk),
        TEST(want_of_memory_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
