/* Threads, and how many of them make sense. */
#include "sys/thread.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/cmocka.h"
#include "support/failalloc.h"
#include "support/tmpdir.h"
#include "sys/clock.h"

typedef struct meeting {
    kn_mutex mutex;
    kn_cond cond;
    int arrived;
    bool go;
} meeting;

static void arrive_and_wait(void *user)
{
    meeting *m = user;
    kn_mutex_lock(&m->mutex);
    m->arrived++;
    kn_cond_broadcast(&m->cond);
    while (!m->go) {
        kn_cond_wait(&m->cond, &m->mutex);
    }
    m->arrived--;
    kn_cond_signal(&m->cond);
    kn_mutex_unlock(&m->mutex);
}

static void threads_meet(void **state)
{
    meeting m = {0};
    kn_thread *threads[4];
    kn_mutex_init(&m.mutex);
    kn_cond_init(&m.cond);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(kn_thread_start(arrive_and_wait, &m, &threads[i], NULL), KILN_OK);
    }
    kn_mutex_lock(&m.mutex);
    while (m.arrived < 4) {
        kn_cond_wait(&m.cond, &m.mutex);
    }
    m.go = true;
    kn_cond_broadcast(&m.cond);
    kn_mutex_unlock(&m.mutex);
    for (size_t i = 0; i < 4; i++) {
        kn_thread_join(threads[i]);
    }
    kn_thread_join(NULL);
    assert_int_equal(m.arrived, 0);
    kn_cond_deinit(&m.cond);
    kn_mutex_deinit(&m.mutex);
}

static void waiting_ends_at_the_deadline(void **state)
{
    kn_mutex mutex;
    kn_cond cond;
    kn_mutex_init(&mutex);
    kn_cond_init(&cond);
    kn_mutex_lock(&mutex);
    uint64_t deadline = kn_clock_now() + 20000000;
    while (kn_cond_wait_until(&cond, &mutex, deadline)) {
    }
    assert_true(kn_clock_now() >= deadline);
    assert_false(kn_cond_wait_until(&cond, &mutex, 0));
    kn_mutex_unlock(&mutex);
    kn_cond_deinit(&cond);
    kn_mutex_deinit(&mutex);
}

static void look_at_signals(void *user)
{
    sigset_t *set = user;
    (void)pthread_sigmask(SIG_BLOCK, NULL, set);
}

static void signals_are_left_to_the_program(void **state)
{
    sigset_t theirs;
    sigset_t before;
    sigset_t after;
    kn_thread *thread;
    (void)sigemptyset(&theirs);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &before), 0);
    assert_int_equal(kn_thread_start(look_at_signals, &theirs, &thread, NULL), KILN_OK);
    kn_thread_join(thread);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &after), 0);
    static const int blocked[] = {SIGINT, SIGTERM, SIGALRM, SIGCHLD, SIGUSR1, SIGPROF, SIGHUP};
    for (size_t i = 0; i < sizeof blocked / sizeof *blocked; i++) {
        assert_int_equal(sigismember(&theirs, blocked[i]), 1);
    }
    assert_int_equal(sigismember(&theirs, SIGSEGV), 0); /* a crash handler still gets its crash */
    for (int s = 1; s < 32; s++) {
        assert_int_equal(sigismember(&after, s), sigismember(&before, s));
    }
}

static void want_of_memory_is_said(void **state)
{
    kn_thread *thread;
    kt_failalloc_arm(1, false);
    assert_int_equal(kn_thread_start(look_at_signals, NULL, &thread, NULL), KILN_E_NOMEM);
    kt_failalloc_disarm();
    assert_null(thread);
}

static void affinity_bounds_the_processors(void **state)
{
    cpu_set_t before;
    cpu_set_t one;
    uint32_t processors = kn_thread_processors();
    assert_true(processors >= 1);
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    assert_true(processors <= (uint32_t)CPU_COUNT(&before));
    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++) {
        if (CPU_ISSET(i, &before)) {
            CPU_SET(i, &one);
        }
    }
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(kn_thread_processors(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}

static void put(const char *root, const char *dir, const char *name, const char *text)
{
    char path[512];
    char command[600];
    (void)snprintf(command, sizeof command, "mkdir -p '%s/%s'", root, dir);
    assert_int_equal(system(command), 0);
    (void)snprintf(path, sizeof path, "%s/%s/%s", root, dir, name);
    kt_file_write(path, text, strlen(text));
}

static uint32_t quota_with(const char *root, const char *groups)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/cgroup", root);
    kt_file_write(path, groups, strlen(groups));
    return kn_thread_quota(path, root);
}

static void P8_the_quota_of_the_control_group_counts(void **state)
{
    const char *root = *state;
    assert_true(quota_with(root, "0::/none\n") == UINT32_MAX);
    put(root, "a/b", "cpu.max", "max 100000\n");
    assert_true(quota_with(root, "0::/a/b\n") == UINT32_MAX);
    put(root, "a", "cpu.max", "250000 100000\n"); /* of a group above */
    assert_int_equal(quota_with(root, "0::/a/b\n"), 3);
    put(root, "a/b", "cpu.max", "50000 100000\n");
    assert_int_equal(quota_with(root, "0::/a/b\n"), 1);
    put(root, ".", "cpu.max", "400000 100000\n"); /* the container's own view: "/" */
    assert_int_equal(quota_with(root, "0::/\n"), 4);
    put(root, "a/b", "cpu.max", "1 0\n");
    put(root, "a", "cpu.max", "garbage\n");
    assert_int_equal(quota_with(root, "0::/a/b\n"), 4);

    put(root, "cpu,cpuacct/x", "cpu.cfs_quota_us", "150000\n");
    put(root, "cpu,cpuacct/x", "cpu.cfs_period_us", "50000\n");
    assert_int_equal(quota_with(root, "5:cpuset:/x\n4:cpu,cpuacct:/x\n"), 3);
    assert_true(quota_with(root, "5:cpuset:/x\n4:cpuacct:/x\nnonsense\n:\n") == UINT32_MAX);
    put(root, "cpu/x", "cpu.cfs_quota_us", "-1\n");
    put(root, "cpu/x", "cpu.cfs_period_us", "100000\n");
    assert_true(quota_with(root, "4:cpu:/x\n") == UINT32_MAX);
    assert_true(kn_thread_quota("/nonexistent", root) == UINT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_meet),
        cmocka_unit_test(waiting_ends_at_the_deadline),
        cmocka_unit_test(signals_are_left_to_the_program),
        cmocka_unit_test(want_of_memory_is_said),
        cmocka_unit_test(affinity_bounds_the_processors),
        kt_dir_test(P8_the_quota_of_the_control_group_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
