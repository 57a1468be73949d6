/* Single flight: who leads, what followers get, and that all waiting ends. */
#include "exec/flight.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/failalloc.h"
#include "support/suite.h"
#include "sys/clock.h"
#include "sys/lock.h"
#include "sys/thread.h"

#define MS UINT64_C(1000000)
#define FAR (kn_clock_now() + 20000 * MS)

/* A result is a counter of its references. */
static void *retain(void *result)
{
    atomic_fetch_add((_Atomic int *)result, 1);
    return result;
}

static void release(void *result)
{
    atomic_fetch_sub((_Atomic int *)result, 1);
}

static kn_flight *make(const char *lock_path)
{
    kn_flight *flight = NULL;
    assert_int_equal(kn_flight_create(lock_path, retain, release, &flight, NULL), KILN_OK);
    return flight;
}

static const uint8_t key_a[32] = {1}, key_b[32] = {2};

typedef struct follower {
    kn_flight *flight;
    uint64_t deadline;
    kn_flight_role role;
    kiln_status status;
    void *result;
    kiln_diag diag;
    _Atomic int *entering;
} follower;

static void follow(void *user)
{
    follower *f = user;
    kn_flight_seat *seat = NULL;
    atomic_fetch_add(f->entering, 1);
    f->role =
        kn_flight_enter(f->flight, key_a, f->deadline, &seat, &f->result, &f->status, &f->diag);
    if (seat != NULL) {
        kn_flight_leave(f->flight, seat, KILN_E_CANCELLED, NULL, NULL);
    }
}

enum { FOLLOWERS = 4 };

static void run_followers(kn_flight *flight, follower *followers, kn_thread **threads,
                          uint64_t deadline, _Atomic int *entering)
{
    for (int i = 0; i < FOLLOWERS; i++) {
        followers[i] = (follower){.flight = flight, .deadline = deadline, .entering = entering};
        assert_int_equal(kn_thread_start(follow, &followers[i], &threads[i], NULL), KILN_OK);
    }
    while (atomic_load(entering) < FOLLOWERS) {
        kn_clock_sleep(MS);
    }
    kn_clock_sleep(50 * MS); /* so that they are inside, not only about to enter */
}

static kn_flight_seat *lead(kn_flight *flight, const uint8_t key[32])
{
    kn_flight_seat *seat = NULL;
    void *result = NULL;
    kiln_status status;
    assert_int_equal(kn_flight_enter(flight, key, FAR, &seat, &result, &status, NULL),
                     KN_FLIGHT_LEADER);
    assert_non_null(seat);
    return seat;
}

KT_TEST(followers_share_the_result)
{
    _Atomic int result = 1, entering = 0;
    follower followers[FOLLOWERS];
    kn_thread *threads[FOLLOWERS];
    kn_flight *flight = make(NULL);
    kn_flight_seat *seat = lead(flight, key_a);
    run_followers(flight, followers, threads, FAR, &entering);
    kn_flight_leave(flight, seat, KILN_OK, (void *)&result, NULL);
    for (int i = 0; i < FOLLOWERS; i++) {
        kn_thread_join(threads[i]);
        assert_int_equal(followers[i].role, KN_FLIGHT_FOLLOWER);
        assert_int_equal(followers[i].status, KILN_OK);
        assert_ptr_equal(followers[i].result, &result);
    }
    assert_int_equal(result, 1 + FOLLOWERS);
    kn_flight_leave(flight, lead(flight, key_a), KILN_E_COMPILE, NULL, NULL); /* a new one leads */
    kn_flight_destroy(flight);
}

KT_TEST(followers_get_the_failure_with_its_log)
{
    _Atomic int entering = 0;
    follower followers[FOLLOWERS];
    kn_thread *threads[FOLLOWERS];
    kiln_diag diag = KILN_DIAG_INIT;
    kn_flight *flight = make(NULL);
    kn_flight_seat *seat = lead(flight, key_a);
    run_followers(flight, followers, threads, FAR, &entering);
    (void)kiln_diag_set(&diag, KILN_E_COMPILE, "fix", "what", "why");
    kiln_diag_set_log(&diag, "the log", 7);
    kiln_diag_set_vendor_code(&diag, -11);
    kn_flight_leave(flight, seat, KILN_E_COMPILE, NULL, &diag);
    kiln_diag_clear(&diag);
    for (int i = 0; i < FOLLOWERS; i++) {
        kn_thread_join(threads[i]);
        assert_int_equal(followers[i].status, KILN_E_COMPILE);
        assert_null(followers[i].result);
        assert_string_equal(followers[i].diag.why, "why");
        assert_string_equal(followers[i].diag.fix, "fix");
        assert_string_equal(followers[i].diag.log, "the log");
        assert_int_equal(followers[i].diag.vendor_code, -11);
        kiln_diag_clear(&followers[i].diag);
    }
    kn_flight_destroy(flight);
}

KT_TEST(C4_a_slow_leader_is_not_waited_for_for_ever)
{
    _Atomic int entering = 0;
    follower followers[FOLLOWERS];
    kn_thread *threads[FOLLOWERS];
    kn_flight *flight = make(NULL);
    kn_flight_seat *seat = lead(flight, key_a);
    run_followers(flight, followers, threads, kn_clock_now() + 100 * MS, &entering);
    for (int i = 0; i < FOLLOWERS; i++) {
        kn_thread_join(threads[i]);
        assert_int_equal(followers[i].role, KN_FLIGHT_TIMED_OUT);
    }
    kn_flight_leave(flight, seat, KILN_E_COMPILE, NULL, NULL);
    kn_flight_destroy(flight);
}

KT_TEST(C5_waiting_costs_nothing)
{
    _Atomic int result = 1, entering = 0;
    follower followers[FOLLOWERS];
    kn_thread *threads[FOLLOWERS];
    struct rusage before, after;
    kn_flight *flight = make(NULL);
    kn_flight_seat *seat = lead(flight, key_a);
    run_followers(flight, followers, threads, FAR, &entering);
    assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
    kn_clock_sleep(300 * MS);
    assert_int_equal(getrusage(RUSAGE_SELF, &after), 0);
    kn_flight_leave(flight, seat, KILN_OK, (void *)&result, NULL);
    for (int i = 0; i < FOLLOWERS; i++) {
        kn_thread_join(threads[i]);
    }
    /* Asleep: they are switched in when woken, not over and over. */
    assert_true(after.ru_nvcsw - before.ru_nvcsw < 20);
    kn_flight_destroy(flight);
}

KT_TEST(a_leader_may_lead_other_keys_and_its_own_alone)
{
    kn_flight *flight = make(NULL);
    kn_flight_seat *outer = lead(flight, key_a), *inner = lead(flight, key_b), *own = NULL;
    void *result = NULL;
    kiln_status status;
    assert_int_equal(kn_flight_enter(flight, key_a, FAR, &own, &result, &status, NULL),
                     KN_FLIGHT_ALONE);
    assert_null(own);
    kn_flight_leave(flight, inner, KILN_E_COMPILE, NULL, NULL);
    kn_flight_leave(flight, outer, KILN_E_COMPILE, NULL, NULL);
    kn_flight_destroy(flight);
}

/* --- between processes (here: between two objects, which exclude each other just so) ---------- */

static bool never(void *user)
{
    (*(int *)user)++;
    return false;
}

static bool at_third(void *user)
{
    return ++*(int *)user == 3;
}

KT_TEST_IN_DIR(the_lock_excludes_and_is_freed)
{
    char *path = kt_at(*state, "lock");
    kn_flight *a = make(path), *b = make(path);
    kn_flight_seat *in_a = lead(a, key_a), *in_b = lead(b, key_a), *other = lead(b, key_b);
    kn_flight_wait wait;
    int looks = 0;
    assert_int_equal(kn_flight_lock(a, in_a, FAR, never, &looks, &wait), KILN_OK);
    assert_false(wait.waited);
    assert_int_equal(kn_flight_lock(b, other, FAR, never, &looks, &wait), KILN_OK);
    assert_int_equal(looks, 0);
    assert_int_equal(kn_flight_lock(b, in_b, kn_clock_now() + 100 * MS, never, &looks, &wait),
                     KILN_E_TIMEOUT);
    assert_true(wait.waited);
    assert_true(looks > 3 && looks < 20);
    looks = 0;
    assert_int_equal(kn_flight_lock(b, in_b, FAR, at_third, &looks, &wait), KILN_MISS);
    kn_flight_leave(a, in_a, KILN_E_COMPILE, NULL, NULL);
    assert_int_equal(kn_flight_lock(b, in_b, FAR, never, &looks, &wait), KILN_OK);
    kn_flight_leave(b, in_b, KILN_E_COMPILE, NULL, NULL);
    kn_flight_leave(b, other, KILN_E_COMPILE, NULL, NULL);
    kn_flight_destroy(a);
    kn_flight_destroy(b);
}

KT_TEST_IN_DIR(C3_without_locks_the_leader_goes_on)
{
    char *path = kt_at(*state, "no-such-folder/lock");
    kn_flight_wait wait;
    int looks = 0;
    kn_flight *nowhere = make(path), *none = make(NULL);
    kn_flight_seat *a = lead(nowhere, key_a), *b = lead(none, key_a);
    assert_int_equal(kn_flight_lock(nowhere, a, FAR, never, &looks, &wait), KILN_E_IO);
    assert_int_equal(kn_flight_lock(none, b, FAR, never, &looks, &wait), KILN_E_UNSUPPORTED);
    kn_flight_leave(nowhere, a, KILN_E_COMPILE, NULL, NULL);
    kn_flight_leave(none, b, KILN_E_COMPILE, NULL, NULL);
    kn_flight_destroy(nowhere);
    kn_flight_destroy(none);
}

static size_t count_threads(void)
{
    size_t count = 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (const struct dirent *task = readdir(tasks); task != NULL; task = readdir(tasks)) {
        count += task->d_name[0] != '.';
    }
    assert_int_equal(closedir(tasks), 0);
    return count;
}

KT_TEST_IN_DIR(E13_a_lock_starts_no_thread)
{
    char *path = kt_at(*state, "lock");
    kn_flight *flight = make(path);
    kn_flight_seat *a = lead(flight, key_a), *b = lead(flight, key_b);
    kn_flight_wait wait;
    int looks = 0;
    const size_t before = count_threads();
    assert_int_equal(kn_flight_lock(flight, a, FAR, never, &looks, &wait), KILN_OK);
    assert_int_equal(kn_flight_lock(flight, b, FAR, never, &looks, &wait), KILN_OK);
    assert_int_equal(count_threads(), before);
    kn_flight_leave(flight, a, KILN_E_COMPILE, NULL, NULL);
    kn_flight_leave(flight, b, KILN_E_COMPILE, NULL, NULL);
    assert_int_equal(count_threads(), before);
    kn_flight_destroy(flight);
}

/* A driver that forks in a compile, and comes back in the child as well. */
KT_TEST_IN_DIR(E13_a_forked_child_waits_for_no_thread)
{
    char *path = kt_at(*state, "lock");
    kn_flight *flight = make(path);
    kn_flight_seat *seat = lead(flight, key_a);
    kn_flight_wait wait;
    int looks = 0, status = 0;
    assert_int_equal(kn_flight_lock(flight, seat, FAR, never, &looks, &wait), KILN_OK);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)alarm(60);
        kn_flight_leave(flight, seat, KILN_E_COMPILE, NULL, NULL);
        _exit(7);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    kn_flight_leave(flight, seat, KILN_E_COMPILE, NULL, NULL);
    kn_flight_destroy(flight);
}

typedef struct comer {
    kn_flight *flight;
    uint8_t key[32];
    int locked;
} comer;

static void come_and_go(void *user)
{
    comer *c = user;
    for (int i = 0; i < 200; i++) {
        kn_flight_wait wait;
        int looks = 0;
        kn_flight_seat *seat = lead(c->flight, c->key);
        c->locked += kn_flight_lock(c->flight, seat, FAR, never, &looks, &wait) == KILN_OK ? 1 : 0;
        kn_flight_leave(c->flight, seat, KILN_E_COMPILE, NULL, NULL);
    }
}

KT_TEST_IN_DIR(E13_locks_that_come_and_go_at_once)
{
    char *path = kt_at(*state, "lock");
    kn_flight *flight = make(path);
    comer comers[FOLLOWERS];
    kn_thread *threads[FOLLOWERS];
    for (int i = 0; i < FOLLOWERS; i++) {
        comers[i] = (comer){.flight = flight, .key = {(uint8_t)(10 * (i + 1))}};
        assert_int_equal(kn_thread_start(come_and_go, &comers[i], &threads[i], NULL), KILN_OK);
    }
    for (int i = 0; i < FOLLOWERS; i++) {
        kn_thread_join(threads[i]);
        assert_int_equal(comers[i].locked, 200);
    }
    kn_flight_destroy(flight);
}

static bool fly_without_memory(void *user)
{
    _Atomic int result = 1;
    kn_flight *flight = NULL;
    kn_flight_seat *seat = NULL;
    void *shared = NULL;
    kiln_status status;
    kn_flight_wait wait;
    bool worked = false;
    int looks = 0;
    if (kn_flight_create(user, retain, release, &flight, NULL) != KILN_OK) {
        return false;
    }
    if (kn_flight_enter(flight, key_a, FAR, &seat, &shared, &status, NULL) == KN_FLIGHT_LEADER) {
        worked = kn_flight_lock(flight, seat, FAR, never, &looks, &wait) == KILN_OK;
        kn_flight_leave(flight, seat, KILN_OK, (void *)&result, NULL);
    }
    assert_int_equal(result, 1);
    kn_flight_destroy(flight);
    return worked;
}

KT_TEST_IN_DIR(flights_survive_failing_allocations)
{
    char *path = kt_at(*state, "lock");
    assert_true(kt_failalloc_each(fly_without_memory, path) >= 5);
}

KT_MAIN(NULL, NULL)
