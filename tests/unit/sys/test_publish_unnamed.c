/* Publishing by files without a name, and reclaiming those that have one: what a killed writer
 * leaves, and what nobody takes from a living one. */
#include "sys/publish.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/faultfs.h"
#include "support/tmpdir.h"
#include "sys/file.h"
#include "unit/sys/publish_place.h"

/* Killed before it is complete it leaves nothing, where the file system can; else it is as
 * before. */
static void an_unnamed_one_is_not_to_be_seen(void **state)
{
    const place *p = *state;
    kn_publish publish;
    struct stat facts;
    assert_int_equal(mkdir(p->tmp, 0700), 0);
    pid_t child = fork();
    if (child == 0) {
        if (kn_publish_begin_unnamed(&publish, p->tmp, p->final_path, NULL) != KILN_OK) {
            _exit(2);
        }
        kn_publish_write(&publish, "half", 4);
        _exit(publish.temporary == NULL ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
    assert_int_equal(kt_file_count(p->root), (size_t)WEXITSTATUS(status));
    for (int i = 0; i < 2; i++) { /* new, and in place of another */
        assert_int_equal(kn_publish_begin_unnamed(&publish, p->tmp, p->final_path, NULL), KILN_OK);
        kn_publish_write(&publish, i == 0 ? "first" : "other", 5);
        kn_publish_insist(&publish);
        assert_int_equal(kn_publish_commit(&publish, true, NULL), KILN_OK);
        char *found = kt_file_read(p->final_path, NULL);
        assert_string_equal(found, i == 0 ? "first" : "other");
        free(found);
        assert_int_equal(kt_file_count(p->root), (size_t)WEXITSTATUS(status) + 1);
    }
    assert_int_equal(stat(p->final_path, &facts), 0);
    assert_int_equal(facts.st_mode & 07777, 0600);
    assert_int_equal(kn_publish_begin_unnamed(&publish, p->tmp, p->final_path, NULL), KILN_OK);
    kn_publish_abort(&publish);
    kn_publish_abort(&publish); /* harmless */
    assert_int_equal(kt_file_count(p->root), (size_t)WEXITSTATUS(status) + 1);
}

/* In the child: begins a temporary that has a name, and stays until it is killed. */
static pid_t start_writer(const place *p)
{
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        kn_publish publish;
        if (kn_publish_begin(&publish, p->tmp, p->final_path, NULL) != KILN_OK) {
            _exit(1);
        }
        kn_publish_write(&publish, "half", 4);
        (void)!write(ready[1], "x", 1);
        for (;;) {
            (void)pause();
        }
    }
    assert_int_equal(close(ready[1]), 0);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(close(ready[0]), 0);
    return child;
}

static kiln_status find_only_name(void *user, const char *name)
{
    char **found = user;
    assert_null(*found);
    *found = strdup(name);
    return KILN_OK;
}

static void S5_a_temporary_is_reclaimed_when_its_writer_is_gone(void **state)
{
    const place *p = *state;
    char *name = NULL;
    int status = 0;
    const pid_t child = start_writer(p);
    assert_int_equal(kn_file_list(p->tmp, find_only_name, &name, NULL), KILN_OK);
    assert_non_null(name);
    assert_true(kn_publish_is_temporary(name));
    char *path = kt_at(p->tmp, name);
    assert_int_equal(kn_publish_reclaim(path), KILN_E_BUSY);
    assert_true(kt_file_exists(path));
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(kt_file_exists(path));
    assert_int_equal(kn_publish_reclaim(path), KILN_OK);
    assert_false(kt_file_exists(path));
    assert_int_equal(kn_publish_reclaim(path), KILN_MISS);
    free(name);
}

static kiln_status reclaim_one(void *user, const char *name)
{
    char *path = kt_at((const char *)user, name);
    (void)kn_publish_reclaim(path);
    return KILN_OK;
}

/* A sweep takes no temporary from a writer that lives, at whatever moment. */
static void S5_a_sweep_takes_nothing_from_living_writers(void **state)
{
    const place *p = *state;
    enum { WRITERS = 4, ROUNDS = 300 };
    assert_int_equal(mkdir(p->tmp, 0700), 0);
    const pid_t test = getpid();
    const pid_t sweeper = fork();
    if (sweeper == 0) {
        while (getppid() == test) { /* also where the test fails */
            (void)kn_file_list(p->tmp, reclaim_one, p->tmp, NULL);
        }
        _exit(0);
    }
    pid_t writers[WRITERS];
    for (int w = 0; w < WRITERS; w++) {
        writers[w] = fork();
        if (writers[w] == 0) {
            bool good = true;
            for (int i = 0; good && i < ROUNDS; i++) {
                kn_publish publish;
                kiln_status status =
                    w % 2 == 0 ? kn_publish_begin(&publish, p->tmp, p->final_path, NULL)
                               : kn_publish_begin_unnamed(&publish, p->tmp, p->final_path, NULL);
                good = status == KILN_OK;
                if (good) {
                    kn_publish_write(&publish, "text", 4);
                    good = kn_publish_commit(&publish, false, NULL) == KILN_OK;
                }
            }
            _exit(good ? 0 : 1);
        }
    }
    for (int w = 0; w < WRITERS; w++) {
        int status = 1;
        assert_int_equal(waitpid(writers[w], &status, 0), writers[w]);
        assert_int_equal(status, 0);
    }
    int status = 0;
    assert_int_equal(kill(sweeper, SIGKILL), 0);
    assert_int_equal(waitpid(sweeper, &status, 0), sweeper);
    assert_published(p, "text");
}

static kiln_status publish_unnamed(const place *p, const char *text, kiln_diag *diag)
{
    kn_publish publish;
    kiln_status status = kn_publish_begin_unnamed(&publish, p->tmp, p->final_path, diag);
    if (status == KILN_OK) {
        kn_publish_write(&publish, text, strlen(text));
        status = kn_publish_commit(&publish, true, diag);
    }
    return status;
}

/* One that has no name gets the final one at once; killed at whatever call, it leaves the file
 * whole or none. */
static void S5_a_new_file_has_no_other_name_before(void **state)
{
    static const char *const rules[] = {"write:1:kill", "write:1:kill-after", "fsync:1:kill-after",
                                        "link:1:kill", "link:1:kill-after"};
    const place *p = *state;
    assert_int_equal(mkdir(p->tmp, 0700), 0);
    kt_faultfs_set(p->root, "tmpfile:1:EIO");
    assert_int_equal(publish_unnamed(p, "text", NULL), KILN_OK);
    const bool can = kt_faultfs_hits() == 1;
    kt_faultfs_set("", "");
    assert_int_equal(kn_file_remove(p->final_path, NULL), KILN_OK);
    for (size_t i = 0; can && i < sizeof rules / sizeof *rules; i++) {
        pid_t child = fork();
        if (child == 0) {
            kt_faultfs_set(p->root, rules[i]);
            (void)publish_unnamed(p, "text", NULL);
            _exit(0);
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(kt_file_count(p->tmp), 0);
        assert_int_equal(kt_file_exists(p->final_path), strcmp(rules[i], "link:1:kill-after") == 0);
    }
    kt_faultfs_set(p->root, "rename:*:EIO");
    (void)kn_file_remove(p->final_path, NULL);
    assert_int_equal(publish_unnamed(p, "new", NULL), KILN_OK);
    assert_int_equal(kt_faultfs_hits(), 0);
    /* In place of another it is a rename, which never leaves the name to nothing. */
    assert_int_equal(publish_unnamed(p, "newer", NULL), KILN_E_IO);
    kt_faultfs_set("", "");
    assert_published(p, "new");
}

static void S4_a_link_that_fails_is_said_and_leaves_nothing(void **state)
{
    static const struct {
        const char *rules;
        kiln_status status;
    } rows[] = {
        {"link:1:EINTR", KILN_OK},    {"link:1:ESTALE", KILN_OK},   {"link:1:ENOENT", KILN_OK},
        {"link:1:EEXIST", KILN_OK},   {"link:*:EPERM", KILN_E_IO},  {"link:*:ENOSPC", KILN_E_IO},
        {"link:*:ENOENT", KILN_E_IO}, {"link:*:EEXIST", KILN_E_IO},
    };
    const place *p = *state;
    assert_int_equal(mkdir(p->tmp, 0700), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kt_faultfs_set(p->root, rows[i].rules);
        const kiln_status status = publish_unnamed(p, "text", NULL);
        const bool hit = kt_faultfs_hits() > 0; /* else the file system has no such files */
        kt_faultfs_set("", "");
        assert_int_equal(status, hit ? rows[i].status : KILN_OK);
        assert_int_equal(kt_file_count(p->root), status == KILN_OK);
        if (status == KILN_OK) {
            assert_published(p, "text");
            assert_int_equal(kn_file_remove(p->final_path, NULL), KILN_OK);
        }
    }
}

int main(void)
{
    const struct CMUnitTest plain[] = {
        publish_test(an_unnamed_one_is_not_to_be_seen),
        publish_test(S5_a_temporary_is_reclaimed_when_its_writer_is_gone),
        publish_test(S5_a_sweep_takes_nothing_from_living_writers),
    };
    const struct CMUnitTest faulty[] = {
        publish_test(S5_a_new_file_has_no_other_name_before),
        publish_test(S4_a_link_that_fails_is_said_and_leaves_nothing),
    };
    int failed = cmocka_run_group_tests(plain, NULL, NULL);
    if (kt_faultfs_available()) {
        failed += cmocka_run_group_tests(faulty, NULL, NULL);
    }
    return failed;
}
