/* What notices a fork: a page that the kernel wipes, and process ids where there is no such page.
 */
#include "sys/fork.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/cmocka.h"
#include "sys/process.h"
#include "sys/thread.h"

/* The linker puts this in the place of kn_process_id: 0 gives the real one. */
static _Atomic uint32_t pretended;
uint32_t __real_kn_process_id(void);
uint32_t __wrap_kn_process_id(void);

uint32_t __wrap_kn_process_id(void)
{
    uint32_t number = atomic_load(&pretended);
    return number != 0 ? number : __real_kn_process_id();
}

/* As on a kernel before 4.14. */
static void init_without_page(kn_fork_guard *guard)
{
    kn_fork_guard_init(guard);
    kn_fork_guard_deinit(guard);
    assert_null(guard->mark);
}

static int see_in_child(kn_fork_guard *guard)
{
    if (!kn_fork_noticed(guard)) {
        return 1;
    }
    if (!kn_fork_noticed(guard)) { /* noticing it changes nothing */
        return 4;
    }
    if (!kn_fork_renew(guard)) {
        return 2;
    }
    kn_fork_renewed(guard);
    return kn_fork_noticed(guard) || kn_fork_renew(guard) ? 3 : 0;
}

static void fork_and_see(kn_fork_guard *guard)
{
    assert_false(kn_fork_noticed(guard));
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(see_in_child(guard));
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_false(kn_fork_noticed(guard));
}

static void a_child_is_noticed_and_renewed_once(void **state)
{
    kn_fork_guard guard;
    kn_fork_guard_init(&guard);
    fork_and_see(&guard);
    kn_fork_guard_deinit(&guard);
    init_without_page(&guard);
    fork_and_see(&guard);
}

enum { ROUNDS = 100000, CROWD = 2 };

typedef struct crowd {
    kn_fork_guard guard;
    _Atomic uint32_t arrived;
    _Atomic uint32_t owner; /* the process that what is guarded belongs to */
    _Atomic uint32_t renewals;
    _Atomic uint32_t strangers; /* threads that took what belongs to a parent */
} crowd;

static void meet(crowd *all, uint32_t target)
{
    atomic_fetch_add(&all->arrived, 1);
    while (atomic_load(&all->arrived) < target) {
        (void)sched_yield();
    }
}

/* Each round is a fork: all threads find themselves in a new process at once. */
static void live_many_lives(void *user)
{
    crowd *all = user;
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        meet(all, 2 * CROWD * round - CROWD);
        atomic_store(&pretended, round + 1);
        if (kn_fork_noticed(&all->guard) && kn_fork_renew(&all->guard)) {
            atomic_store(&all->owner, round + 1);
            atomic_fetch_add(&all->renewals, 1);
            kn_fork_renewed(&all->guard);
        }
        if (atomic_load(&all->owner) != round + 1) {
            atomic_fetch_add(&all->strangers, 1);
        }
        meet(all, 2 * CROWD * round);
    }
}

static void no_thread_of_a_child_takes_itself_for_the_parent(void **state)
{
    crowd all = {0};
    kn_thread *threads[CROWD];
    atomic_store(&pretended, 1);
    init_without_page(&all.guard);
    for (size_t i = 0; i < CROWD; i++) {
        assert_int_equal(kn_thread_start(live_many_lives, &all, &threads[i], NULL), KILN_OK);
    }
    for (size_t i = 0; i < CROWD; i++) {
        kn_thread_join(threads[i]);
    }
    atomic_store(&pretended, 0);
    assert_int_equal(atomic_load(&all.strangers), 0);
    assert_int_equal(atomic_load(&all.renewals), ROUNDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_is_noticed_and_renewed_once),
        cmocka_unit_test(no_thread_of_a_child_takes_itself_for_the_parent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
