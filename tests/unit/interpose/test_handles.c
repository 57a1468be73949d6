/* The set of live handles: what was added is found until it is removed, whichever other handles
 * share its place; no handle is read. */
#include "interpose/handles.h"

#include <pthread.h>
#include <stdint.h>

#include "support/cmocka.h"
#include "support/failalloc.h"

enum { MANY = 20000, THREADS = 4, ROUNDS = 300, OWN = 64 };

/* Addresses at which nothing lies. */
static const void *handle_of(uintptr_t number)
{
    return (const void *)(0x1000 + 16 * number);
}

static void many_are_found_and_no_other(void **state)
{
    static kn_handles set;
    for (uintptr_t i = 0; i < MANY; i++) {
        assert_true(kn_handles_add(&set, handle_of(i)));
    }
    for (uintptr_t i = 0; i < MANY; i++) {
        assert_true(kn_handles_have(&set, handle_of(i)));
        assert_false(kn_handles_have(&set, handle_of(i + MANY)));
    }
    for (uintptr_t i = 0; i < MANY; i += 2) {
        assert_true(kn_handles_remove(&set, handle_of(i)));
        assert_false(kn_handles_remove(&set, handle_of(i)));
    }
    for (uintptr_t i = 0; i < MANY; i++) {
        assert_int_equal(kn_handles_have(&set, handle_of(i)), i % 2 == 1);
    }
}

static void none_is_in_no_set(void **state)
{
    static kn_handles set;
    assert_false(kn_handles_have(&set, NULL) || kn_handles_remove(&set, NULL));
    assert_true(kn_handles_add(&set, handle_of(1)));
    assert_false(kn_handles_have(&set, NULL) || kn_handles_remove(&set, NULL));
}

static void a_removed_one_comes_again(void **state)
{
    static kn_handles set;
    for (int i = 0; i < 3; i++) {
        assert_true(kn_handles_add(&set, handle_of(7)));
        assert_true(kn_handles_have(&set, handle_of(7)));
        assert_true(kn_handles_remove(&set, handle_of(7)));
        assert_false(kn_handles_have(&set, handle_of(7)));
    }
}

static void without_memory_it_is_said(void **state)
{
    static kn_handles set;
    kt_failalloc_arm(1, false);
    assert_false(kn_handles_add(&set, handle_of(1)));
    kt_failalloc_disarm();
    assert_false(kn_handles_have(&set, handle_of(1)));
    assert_true(kn_handles_add(&set, handle_of(1)));
}

static kn_handles shared;

/* Each thread adds and removes handles of its own, and of all threads' tries to remove one, one
 * succeeds. */
static void *work(void *number)
{
    const uintptr_t first = (uintptr_t)number * OWN;
    uintptr_t won = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (uintptr_t i = 0; i < OWN; i++) {
            if (!kn_handles_add(&shared, handle_of(first + i))) {
                return NULL;
            }
        }
        for (uintptr_t i = 0; i < OWN; i++) {
            if (!kn_handles_have(&shared, handle_of(first + i)) ||
                !kn_handles_remove(&shared, handle_of(first + i))) {
                return NULL;
            }
        }
    }
    for (uintptr_t i = 0; i < OWN; i++) {
        won += kn_handles_remove(&shared, handle_of(1000000 + i));
    }
    return (void *)(won + 1);
}

static void threads_do_not_disturb_each_other(void **state)
{
    pthread_t threads[THREADS];
    uintptr_t won = 0;
    for (uintptr_t i = 0; i < OWN; i++) {
        assert_true(kn_handles_add(&shared, handle_of(1000000 + i)));
    }
    for (uintptr_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)(i + 1)), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        void *result = NULL;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_non_null(result);
        won += (uintptr_t)result - 1;
    }
    assert_int_equal(won, OWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_are_found_and_no_other),
        cmocka_unit_test(none_is_in_no_set),
        cmocka_unit_test(a_removed_one_comes_again),
        cmocka_unit_test(without_memory_it_is_said),
        cmocka_unit_test(threads_do_not_disturb_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
