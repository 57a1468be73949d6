/* Publishing: whole or not at all, and never in the way. Most of it runs over the fault injector;
 * what does not is run in sanitizer builds, too. */
#include "sys/publish.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/failalloc.h"
#include "support/faultfs.h"
#include "support/tmpdir.h"
#include "sys/file.h"
#include "unit/sys/publish_place.h"

static kiln_status publish_text(const place *p, const char *text, bool sync, kiln_diag *diag)
{
    kn_publish publish;
    kiln_status status = kn_publish_begin(&publish, p->tmp, p->final_path, diag);
    if (status != KILN_OK) {
        return status;
    }
    kn_publish_write(&publish, text, strlen(text));
    return kn_publish_commit(&publish, sync, diag);
}

static void assert_nothing_left(const place *p)
{
    assert_int_equal(kt_file_count(p->root), 0);
}

static void a_file_appears_whole_and_private(void **state)
{
    const place *p = *state;
    struct stat facts;
    kn_publish publish;
    mode_t old = umask(0777);
    (void)mkdir(p->tmp, 0);
    (void)chmod(p->tmp, 0700);
    (void)umask(0277); /* a umask that would take the owner's own bits */
    assert_int_equal(kn_publish_begin(&publish, p->tmp, p->final_path, NULL), KILN_OK);
    (void)umask(old);
    kn_publish_write(&publish, "hel", 3);
    assert_false(kt_file_exists(p->final_path));
    assert_int_equal(kt_file_count(p->tmp), 1);
    kn_publish_write(&publish, "lo", 2);
    kn_publish_write(&publish, NULL, 0);
    assert_int_equal(kn_publish_commit(&publish, true, NULL), KILN_OK);
    assert_published(p, "hello");
    assert_int_equal(stat(p->final_path, &facts), 0);
    assert_int_equal(facts.st_mode & 07777, 0600);
    assert_int_equal(publish_text(p, "second", false, NULL), KILN_OK);
    assert_published(p, "second");
}

static void an_abort_leaves_nothing(void **state)
{
    const place *p = *state;
    kn_publish publish;
    assert_int_equal(kn_publish_begin(&publish, p->tmp, p->final_path, NULL), KILN_OK);
    kn_publish_write(&publish, "x", 1);
    kn_publish_abort(&publish);
    kn_publish_abort(&publish); /* harmless */
    assert_nothing_left(p);
}

static void C1_writers_of_one_file_never_mix(void **state)
{
    const place *p = *state;
    enum { WRITERS = 8, ROUNDS = 20, SIZE = 100000 };
    for (int w = 0; w < WRITERS; w++) {
        if (fork() == 0) {
            char *text = malloc(SIZE);
            memset(text, 'A' + w, SIZE);
            bool good = true;
            for (int i = 0; i < ROUNDS && good; i++) {
                kn_publish publish;
                good = kn_publish_begin(&publish, p->tmp, p->final_path, NULL) == KILN_OK;
                for (int part = 0; good && part < 10; part++) {
                    kn_publish_write(&publish, text, SIZE / 10);
                }
                good = good && kn_publish_commit(&publish, false, NULL) == KILN_OK;
                size_t size = 0;
                char *seen = kt_file_read(p->final_path, &size);
                good = good && seen != NULL && size == SIZE;
                for (size_t k = 1; good && k < SIZE; k++) {
                    good = seen[k] == seen[0];
                }
                free(seen);
            }
            free(text);
            _exit(good ? 0 : 1);
        }
    }
    for (int w = 0; w < WRITERS; w++) {
        int status = 1;
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    assert_int_equal(kt_file_count(p->tmp), 0);
}

static void S4_what_cannot_be_written_is_said_and_leaves_nothing(void **state)
{
    static const struct {
        const char *rules;
        int error;
        bool has_fix;
    } rows[] = {
        {"write:1:ENOSPC", ENOSPC, true},
        {"write:1:EDQUOT", EDQUOT, true},
        {"write:1:short;write:2:ENOSPC", ENOSPC, true},
        {"write:1:EIO", EIO, false},
        {"fsync:1:EIO", EIO, false},
        {"fsync:1:ENOSPC", ENOSPC, true},
        {"open:*:EROFS", EROFS, true},
        {"open:*:EACCES", EACCES, true},
        {"open:*:EMFILE", EMFILE, true},
        {"mkdir:*:EROFS", EROFS, true},
        {"rename:*:EACCES", EACCES, true},
        {"rename:*:EXDEV", EXDEV, true},
        {"rename:*:ENOENT", ENOENT, false},
        {"open:*:EEXIST", EEXIST, false},
        {"rename:*:EINTR", EINTR, false},
    };
    const place *p = *state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kiln_diag diag = KILN_DIAG_INIT;
        kt_faultfs_set(p->root, rows[i].rules);
        assert_int_equal(publish_text(p, "0123456789", true, &diag), KILN_E_IO);
        assert_true(kt_faultfs_hits() > 0);
        kt_faultfs_set("", "");
        assert_int_equal(diag.status, KILN_E_IO);
        assert_int_equal(diag.vendor_code, rows[i].error);
        assert_non_null(strstr(diag.what, p->root));
        assert_int_equal(diag.fix[0] != '\0', rows[i].has_fix);
        assert_nothing_left(p);
        kiln_diag_clear(&diag);
    }
}

static void S4_a_failed_update_keeps_the_old_file(void **state)
{
    const place *p = *state;
    assert_int_equal(publish_text(p, "old", true, NULL), KILN_OK);
    kt_faultfs_set(p->root, "write:1:ENOSPC");
    assert_int_equal(publish_text(p, "new", true, NULL), KILN_E_IO);
    kt_faultfs_set("", "");
    assert_published(p, "old");
}

static void interruptions_and_short_writes_are_gone_through(void **state)
{
    const place *p = *state;
    kt_faultfs_set(p->root, "open:1:EINTR:tmp/;write:1:short;write:2:EINTR;write:3:short;"
                            "fsync:1:EINTR;rename:1:EINTR");
    assert_int_equal(publish_text(p, "0123456789", true, NULL), KILN_OK);
    assert_int_equal(kt_faultfs_hits(), 6);
    kt_faultfs_set("", "");
    assert_published(p, "0123456789");
}

static void S4_parts_arrive_in_order_however_short_the_writes(void **state)
{
    const place *p = *state;
    const kn_span parts[] = {kn_span_of_text("abc"), kn_span_of_text(""), kn_span_of_text("defgh"),
                             kn_span_of_text("i")};
    static const char *const rules[] = {NULL, "write:1+:short", "write:2:short;write:1:EINTR"};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        kn_publish publish;
        kt_faultfs_set(p->root, rules[i]);
        assert_int_equal(kn_publish_begin(&publish, p->tmp, p->final_path, NULL), KILN_OK);
        kn_publish_write_parts(&publish, parts, sizeof parts / sizeof *parts);
        assert_int_equal(kn_publish_commit(&publish, false, NULL), KILN_OK);
        kt_faultfs_set("", "");
        assert_published(p, "abcdefghi");
    }
}

static void a_file_system_without_fsync_will_do(void **state)
{
    const place *p = *state;
    kt_faultfs_set(p->root, "fsync:*:EINVAL");
    assert_int_equal(publish_text(p, "text", true, NULL), KILN_OK);
    assert_int_equal(kt_faultfs_hits(), 1);
    kt_faultfs_set("", "");
    assert_published(p, "text");
}

static void D2_data_is_on_disk_before_it_has_its_name(void **state)
{
    const place *p = *state;
    assert_int_equal(publish_text(p, "first", true, NULL), KILN_OK);
    /* The process dies at the sync: the final path still has what it had. */
    pid_t child = fork();
    if (child == 0) {
        kt_faultfs_set(p->root, "fsync:1:kill");
        (void)publish_text(p, "second", true, NULL);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    char *found = kt_file_read(p->final_path, NULL);
    assert_string_equal(found, "first");
    free(found);
    /* Without sync there is none. */
    kt_faultfs_set(p->root, "fsync:*:EIO");
    assert_int_equal(publish_text(p, "third", false, NULL), KILN_OK);
    assert_int_equal(kt_faultfs_hits(), 0);
}

static void S5_a_killed_writer_leaves_only_a_temporary(void **state)
{
    static const char *const rules[] = {"write:1:kill", "write:1:kill-after", "fsync:1:kill-after",
                                        "rename:1:kill"};
    const place *p = *state;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        pid_t child = fork();
        if (child == 0) {
            kt_faultfs_set(p->root, rules[i]);
            (void)publish_text(p, "text", true, NULL);
            _exit(0);
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        assert_false(kt_file_exists(p->final_path));
        assert_int_equal(kt_file_count(p->tmp), i + 1);
        assert_int_equal(kt_file_count(p->root), i + 1);
    }
    assert_int_equal(publish_text(p, "text", true, NULL), KILN_OK); /* and stops nobody */
}

static void C2_losing_the_race_is_success(void **state)
{
    static const char *const rules[] = {"rename:1:EEXIST", "rename:1:ESTALE", "rename:1:ENOENT",
                                        "rename:1:EBUSY"};
    const place *p = *state;
    assert_int_equal(publish_text(p, "winner", true, NULL), KILN_OK);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        kt_faultfs_set(p->root, rules[i]);
        assert_int_equal(publish_text(p, "loser", true, NULL), KILN_OK);
        assert_int_equal(kt_faultfs_hits(), 1);
        kt_faultfs_set("", "");
        assert_published(p, "winner");
    }
}

static void one_that_insists_takes_no_other_file_for_its_own(void **state)
{
    static const struct {
        const char *rules;
        kiln_status status;
        const char *there;
    } rows[] = {
        {"rename:*:EBUSY", KILN_E_IO, "old"}, /* a file that is mounted over its name */
        {"rename:*:ENOENT", KILN_E_IO, "old"},
        {"rename:1:EEXIST", KILN_OK, "new"},
        {"rename:1:late-ESTALE", KILN_OK, "new"},
    };
    const place *p = *state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kn_publish publish;
        kiln_diag diag = KILN_DIAG_INIT;
        assert_int_equal(publish_text(p, "old", true, NULL), KILN_OK);
        assert_int_equal(kn_publish_begin(&publish, p->tmp, p->final_path, NULL), KILN_OK);
        kn_publish_write(&publish, "new", 3);
        kn_publish_insist(&publish);
        kt_faultfs_set(p->root, rows[i].rules);
        assert_int_equal(kn_publish_commit(&publish, true, &diag), rows[i].status);
        kt_faultfs_set("", "");
        assert_int_equal(diag.status, rows[i].status);
        assert_published(p, rows[i].there);
        kiln_diag_clear(&diag);
    }
}

static void C2_a_rename_that_worked_and_said_otherwise_is_success(void **state)
{
    const place *p = *state;
    kt_faultfs_set(p->root, "rename:1:late-ESTALE");
    assert_int_equal(publish_text(p, "text", true, NULL), KILN_OK);
    kt_faultfs_set("", "");
    assert_published(p, "text");
}

static void C2_a_refusal_that_passes_is_tried_again(void **state)
{
    const place *p = *state;
    kt_faultfs_set(p->root, "rename:1:ESTALE;rename:2:EBUSY");
    assert_int_equal(publish_text(p, "text", true, NULL), KILN_OK);
    assert_int_equal(kt_faultfs_hits(), 2);
    kt_faultfs_set("", "");
    assert_published(p, "text");
}

static void dirs_removed_meanwhile_are_made_again(void **state)
{
    const place *p = *state;
    kn_publish publish;
    char *dir = kn_path_dir(p->final_path);
    assert_int_equal(kn_publish_begin(&publish, p->tmp, p->final_path, NULL), KILN_OK);
    assert_int_equal(kn_file_make_dir(dir, NULL), KILN_OK);
    assert_int_equal(kn_file_remove_dir(dir), KILN_OK);
    kn_publish_write(&publish, "text", 4);
    assert_int_equal(kn_publish_commit(&publish, false, NULL), KILN_OK);
    assert_published(p, "text");
    assert_int_equal(kn_file_remove_dir(p->tmp), KILN_OK);
    assert_int_equal(publish_text(p, "more", false, NULL), KILN_OK);
    assert_published(p, "more");
    free(dir);
}

static void a_dir_in_the_way_is_an_error(void **state)
{
    const place *p = *state;
    kiln_diag diag = KILN_DIAG_INIT;
    assert_int_equal(kn_file_make_dir(p->final_path, NULL), KILN_OK);
    assert_int_equal(publish_text(p, "text", false, &diag), KILN_E_IO);
    assert_int_equal(diag.vendor_code, EISDIR);
    assert_nothing_left(p);
    kiln_diag_clear(&diag);
}

static void want_of_memory_leaves_nothing(void **state)
{
    const place *p = *state;
    for (uint64_t n = 1;; n++) {
        kt_failalloc_arm(n, false);
        kiln_status status = publish_text(p, "text", false, NULL);
        bool fired = kt_failalloc_fired();
        kt_failalloc_disarm();
        if (!fired) {
            assert_int_equal(status, KILN_OK);
            assert_true(n > 3);
            break;
        }
        assert_true(status != KILN_OK);
        assert_nothing_left(p);
    }
    assert_published(p, "text");
}

int main(void)
{
    const struct CMUnitTest plain[] = {
        publish_test(a_file_appears_whole_and_private),
        publish_test(an_abort_leaves_nothing),
        publish_test(C1_writers_of_one_file_never_mix),
        publish_test(dirs_removed_meanwhile_are_made_again),
        publish_test(a_dir_in_the_way_is_an_error),
        publish_test(want_of_memory_leaves_nothing),
    };
    const struct CMUnitTest faulty[] = {
        publish_test(S4_what_cannot_be_written_is_said_and_leaves_nothing),
        publish_test(S4_a_failed_update_keeps_the_old_file),
        publish_test(interruptions_and_short_writes_are_gone_through),
        publish_test(S4_parts_arrive_in_order_however_short_the_writes),
        publish_test(a_file_system_without_fsync_will_do),
        publish_test(D2_data_is_on_disk_before_it_has_its_name),
        publish_test(S5_a_killed_writer_leaves_only_a_temporary),
        publish_test(C2_losing_the_race_is_success),
        publish_test(one_that_insists_takes_no_other_file_for_its_own),
        publish_test(C2_a_rename_that_worked_and_said_otherwise_is_success),
        publish_test(C2_a_refusal_that_passes_is_tried_again),
    };
    int failed = cmocka_run_group_tests(plain, NULL, NULL);
    if (kt_faultfs_available()) {
        failed += cmocka_run_group_tests(faulty, NULL, NULL);
    }
    return failed;
}
