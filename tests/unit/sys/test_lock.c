/* Advisory locks, within and between processes. */
#include "sys/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/cmocka.h"
#include "support/failalloc.h"
#include "support/tmpdir.h"
#include "sys/clock.h"
#include "sys/file.h"
#include "sys/thread.h"

static void two_files_exclude_each_other_byte_by_byte(void **state)
{
    const uint64_t far = (UINT64_C(1) << 62) - 1;
    char *path = kt_at(*state, "lock");
    kn_lock_file *a;
    kn_lock_file *b;
    assert_int_equal(kn_lock_file_open(path, &a, NULL), KILN_OK);
    assert_int_equal(kn_lock_file_open(path, &b, NULL), KILN_OK);
    assert_int_equal(kn_lock_try(a, 7), KILN_OK);
    assert_int_equal(kn_lock_try(b, 7), KILN_E_BUSY);
    assert_int_equal(kn_lock_try(b, 6), KILN_OK);
    assert_int_equal(kn_lock_try(b, 8), KILN_OK);
    assert_int_equal(kn_lock_try(a, far), KILN_OK);
    assert_int_equal(kn_lock_try(b, far), KILN_E_BUSY);
    assert_int_equal(kn_lock_try(a, far + 1), KILN_E_INVALID);
    kn_lock_drop(a, 7);
    assert_int_equal(kn_lock_try(b, 7), KILN_OK);
    assert_int_equal(kn_lock_try(a, 7), KILN_E_BUSY);
    kn_lock_file_close(b); /* drops all it held */
    assert_int_equal(kn_lock_try(a, 6), KILN_OK);
    assert_int_equal(kn_lock_try(a, 7), KILN_OK);
    kn_lock_file_close(a);
    kn_lock_file_close(NULL);
    assert_true(kt_file_exists(path));
}

static void a_lock_ends_with_its_holder(void **state)
{
    char *path = kt_at(*state, "lock");
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        kn_lock_file *mine;
        bool held =
            kn_lock_file_open(path, &mine, NULL) == KILN_OK && kn_lock_try(mine, 1) == KILN_OK;
        (void)!write(ready[1], held ? "y" : "n", 1);
        (void)pause();
        _exit(0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    kn_lock_file *file;
    assert_int_equal(kn_lock_file_open(path, &file, NULL), KILN_OK);
    assert_int_equal(kn_lock_try(file, 1), KILN_E_BUSY);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(kn_lock_try(file, 1), KILN_OK);
    kn_lock_file_close(file);
    (void)close(ready[0]);
    (void)close(ready[1]);
}

/* Locks belong to the open file, which a fork shares: the child must let go of it. */
static void a_forks_child_holds_nothing_and_takes_nothing(void **state)
{
    char *path = kt_at(*state, "lock");
    kn_lock_file *mine, *other;
    int ready[2];
    char byte = 0;
    assert_int_equal(kn_lock_file_open(path, &mine, NULL), KILN_OK);
    assert_int_equal(kn_lock_file_open(path, &other, NULL), KILN_OK);
    assert_int_equal(kn_lock_try(mine, 1), KILN_OK);
    assert_true(kn_lock_is_held(other, 1));
    assert_false(kn_lock_is_held(mine, 1)); /* by itself: no other has it */
    assert_false(kn_lock_is_held(other, 2));
    assert_false(kn_lock_is_forkers(other, 1));
    assert_int_equal(kn_lock_find(other, 0, 100), 1);
    assert_int_equal(kn_lock_find(other, 2, 100), 0);
    assert_int_equal(kn_lock_find(mine, 0, 100), 0);
    assert_int_equal(kn_lock_try(mine, 2), KILN_OK);
    assert_int_equal(kn_lock_find(other, 0, 100), 0); /* two are one lock */
    kn_lock_drop(mine, 2);
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        kn_lock_file *own = NULL;
        bool good = kn_lock_try(mine, 2) == KILN_E_IO; /* closed here */
        kn_lock_drop(mine, 1);                         /* not the parent's */
        kn_lock_file_close(mine);
        good = good && kn_lock_file_open(path, &own, NULL) == KILN_OK &&
               kn_lock_try(own, 1) == KILN_E_BUSY && kn_lock_is_forkers(own, 1) &&
               !kn_lock_is_forkers(own, 2);
        (void)!write(ready[1], good ? "y" : "n", 1);
        (void)pause();
        _exit(0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    assert_int_equal(kn_lock_try(other, 1), KILN_E_BUSY);
    kn_lock_file_close(mine); /* only the child could have it now */
    assert_int_equal(kn_lock_try(other, 1), KILN_OK);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    kn_lock_file_close(other);
    (void)close(ready[0]);
    (void)close(ready[1]);
}

static void the_file_is_private_and_no_link(void **state)
{
    char *path = kt_at(*state, "lock");
    char *link = kt_at(*state, "link");
    kiln_diag diag = KILN_DIAG_INIT;
    kn_lock_file *file;
    struct stat facts;
    mode_t old = umask(0);
    assert_int_equal(kn_lock_file_open(path, &file, NULL), KILN_OK);
    (void)umask(old);
    kn_lock_file_close(file);
    assert_int_equal(stat(path, &facts), 0);
    assert_int_equal(facts.st_mode & 07777, 0600);
    assert_int_equal(symlink("lock", link), 0);
    assert_int_equal(kn_lock_file_open(link, &file, &diag), KILN_E_IO);
    assert_int_equal(diag.vendor_code, ELOOP);
    assert_null(file);
    assert_int_equal(kn_lock_file_open(*state, &file, &diag), KILN_E_IO);
    kiln_diag_clear(&diag);
}

static bool open_once(void *user)
{
    kn_lock_file *file;
    kiln_status status = kn_lock_file_open(user, &file, NULL);
    assert_int_equal(status == KILN_OK, file != NULL);
    kn_lock_file_close(file);
    return status == KILN_OK;
}

static void want_of_memory_is_said(void **state)
{
    char *path = kt_at(*state, "lock");
    assert_int_equal(kt_failalloc_each(open_once, path), 1);
}

static void close_soon(void *user)
{
    kn_clock_sleep(UINT64_C(20000000));
    kn_lock_file_close(user);
}

static void waiting_ends_with_the_other_files_closing(void **state)
{
    const uint64_t minute = UINT64_C(60000000000);
    char *path = kt_at(*state, "lock");
    kn_lock_file *waits;
    kn_lock_file *holds;
    kn_thread *thread;
    assert_int_equal(kn_lock_file_open(path, &waits, NULL), KILN_OK);
    assert_int_equal(kn_lock_file_open(path, &holds, NULL), KILN_OK);
    assert_false(kn_lock_wait(waits, path, 1)); /* it looks from now on */
    assert_false(kn_lock_wait(waits, path, 1));
    assert_int_equal(kn_thread_start(close_soon, holds, &thread, NULL), KILN_OK);
    assert_true(kn_lock_wait(waits, path, minute));
    kn_thread_join(thread);
    assert_false(kn_lock_wait(waits, path, 1));
    kn_lock_file_close(waits);
}

static void waiting_at_no_file_is_a_sleep(void **state)
{
    char *path = kt_at(*state, "lock"), *none = kt_at(*state, "none");
    kn_lock_file *waits;
    assert_int_equal(kn_lock_file_open(path, &waits, NULL), KILN_OK);
    assert_false(kn_lock_wait(waits, none, 1));
    assert_false(kn_lock_wait(waits, none, 1));
    kn_lock_file_close(waits);
}

int main(void)
{
#define TEST(f) kt_dir_test(f)
    const struct CMUnitTest tests[] = {
        TEST(two_files_exclude_each_other_byte_by_byte),
        TEST(a_lock_ends_with_its_holder),
        TEST(a_forks_child_holds_nothing_and_takes_nothing),
        TEST(the_file_is_private_and_no_link),
        TEST(waiting_ends_with_the_other_files_closing),
        TEST(waiting_at_no_file_is_a_sleep),
        TEST(want_of_memory_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
