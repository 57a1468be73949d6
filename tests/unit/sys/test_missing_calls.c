/* What is done where the kernel lacks a call, a sandbox forbids it, or a child cannot be waited
 * for. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/cmocka.h"
#include "support/tmpdir.h"
#include "sys/clock.h"
#include "sys/process.h"
#include "sys/random.h"
#include "sys/thread.h"

#define SECOND UINT64_C(1000000000)

/* The linker's names. */
long __wrap_syscall(long number, ...);
int __real_memfd_create(const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags);
pid_t __real_waitpid(pid_t pid, int *status, int options);
pid_t __wrap_waitpid(pid_t pid, int *status, int options);
ssize_t __wrap_getrandom(void *data, size_t size, unsigned flags);
int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set);

static bool no_memfd;
static bool stuck;
static pid_t last_waited_for;
static int affinity_error;

/* In this program: pidfd_open alone. */
long __wrap_syscall(long number, ...)
{
    errno = ENOSYS;
    return -1;
}

int __wrap_memfd_create(const char *name, unsigned flags)
{
    if (no_memfd) {
        errno = ENOSYS;
        return -1;
    }
    return __real_memfd_create(name, flags);
}

pid_t __wrap_waitpid(pid_t pid, int *status, int options)
{
    last_waited_for = pid;
    return stuck ? 0 : __real_waitpid(pid, status, options);
}

ssize_t __wrap_getrandom(void *data, size_t size, unsigned flags)
{
    errno = ENOSYS;
    return -1;
}

int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
    errno = affinity_error;
    return -1;
}

static kiln_status run_shell(const char *script, const char *input, uint64_t limit_ns,
                             kn_process_result *out)
{
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    return kn_process_run(&(kn_process_request){.argv = argv,
                                                .input = input,
                                                .input_size = input != NULL ? strlen(input) : 0,
                                                .limit_ns = limit_ns},
                          out, NULL);
}

static void without_pidfd_the_end_is_seen_all_the_same(void **state)
{
    kn_process_result r;
    assert_int_equal(run_shell("echo a; sleep 0.1; echo b; exit 7", NULL, 60 * SECOND, &r),
                     KILN_OK);
    assert_int_equal(r.exit_code, 7);
    assert_string_equal(r.out, "a\nb\n");
    kn_process_result_deinit(&r);
    assert_int_equal(run_shell("exec >/dev/null 2>&1; sleep 0.1; exit 8", NULL, 0, &r), KILN_OK);
    assert_int_equal(r.exit_code, 8);
    kn_process_result_deinit(&r);
    assert_int_equal(run_shell("sleep 60", NULL, SECOND / 10, &r), KILN_OK);
    assert_true(r.timed_out);
    assert_int_equal(r.signal, SIGKILL);
    kn_process_result_deinit(&r);
}

static void without_memfd_input_comes_from_an_unnamed_file(void **state)
{
    kn_process_result r;
    no_memfd = true;
    kiln_status status = run_shell("cat", "input", 0, &r);
    no_memfd = false;
    assert_int_equal(status, KILN_OK);
    assert_string_equal(r.out, "input");
    kn_process_result_deinit(&r);
}

static void P2_a_child_stuck_in_the_kernel_is_abandoned(void **state)
{
    kn_process_result r;
    int wait_status;
    uint64_t start = kn_clock_now();
    stuck = true;
    kiln_status status = run_shell("echo said; sleep 60", NULL, SECOND / 10, &r);
    stuck = false;
    uint64_t took = kn_clock_now() - start;
    assert_int_equal(status, KILN_OK);
    assert_true(r.timed_out);
    assert_int_equal(r.exit_code, -1);
    assert_int_equal(r.signal, 0);
    assert_string_equal(r.out, "said\n");
    assert_true(took >= SECOND + SECOND / 10 && took < 30 * SECOND);
    kn_process_result_deinit(&r);
    assert_int_equal(__real_waitpid(last_waited_for, &wait_status, 0), last_waited_for);
    assert_int_equal(WTERMSIG(wait_status), SIGKILL);
}

static void without_descriptors_nothing_starts_and_nothing_leaks(void **state)
{
    struct rlimit old;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    size_t open_now = kt_file_count("/proc/self/fd");
    for (rlim_t limit = 3; limit < 64; limit++) {
        kn_process_result r;
        struct rlimit low = {.rlim_cur = limit, .rlim_max = old.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
        kiln_status status = run_shell("cat", "x", 0, &r);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
        kn_process_result_deinit(&r);
        assert_true(status == KILN_OK || status == KILN_E_UNAVAILABLE);
        assert_true(limit > 3 || status == KILN_E_UNAVAILABLE);
        assert_true(limit < 63 || status == KILN_OK);
        assert_int_equal(kt_file_count("/proc/self/fd"), open_now);
    }
}

static void without_getrandom_numbers_still_differ(void **state)
{
    uint64_t seen[256];
    for (size_t i = 0; i < 256; i++) {
        seen[i] = kn_random_u64();
        for (size_t j = 0; j < i; j++) {
            assert_true(seen[i] != seen[j]);
        }
    }
}

static void without_affinity_there_is_at_least_one_processor(void **state)
{
    affinity_error = ENOSYS;
    assert_true(kn_thread_processors() >= 1);
    affinity_error = EINVAL; /* no mask is ever large enough */
    assert_true(kn_thread_processors() >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_pidfd_the_end_is_seen_all_the_same),
        cmocka_unit_test(without_memfd_input_comes_from_an_unnamed_file),
        cmocka_unit_test(P2_a_child_stuck_in_the_kernel_is_abandoned),
        cmocka_unit_test(without_descriptors_nothing_starts_and_nothing_leaks),
        cmocka_unit_test(without_getrandom_numbers_still_differ),
        cmocka_unit_test(without_affinity_there_is_at_least_one_processor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
