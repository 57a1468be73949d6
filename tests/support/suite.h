/* Tests that list themselves, in the order of their lines, and the program that runs them:
 *
 *     KT_TEST(name) { ... }                         *state is NULL
 *     KT_TEST_IN_DIR(name) { ... }                  *state is the path of a directory of its own
 *     KT_TEST_WITH(setup, teardown, name) { ... }   *state is what setup makes
 *
 *     KT_MAIN(NULL, NULL)                           or what is set up once for all of them
 */
#ifndef KILN_TESTS_SUITE_H
#define KILN_TESTS_SUITE_H

#include "support/cmocka.h"
#include "support/tmpdir.h"

/* By line, with room for two of a line; cmocka passes over those that are empty. */
__attribute__((unused)) static struct CMUnitTest kt_cases[1400];

#define KT_LIST(setup, teardown, test, which, shown)                                               \
    __attribute__((constructor)) static void list_##which##_##test(void)                           \
    {                                                                                              \
        kt_cases[2 * __LINE__ + which] = (struct CMUnitTest){shown, test, setup, teardown, NULL};  \
    }
#define KT_DECLARED(test) static void test(__attribute__((unused)) void **state)

#define KT_TEST_WITH(setup, teardown, test)                                                        \
    KT_DECLARED(test);                                                                             \
    KT_LIST(setup, teardown, test, 0, #test)                                                       \
    KT_DECLARED(test)

#define KT_TEST(test) KT_TEST_WITH(NULL, NULL, test)
#define KT_TEST_IN_DIR(test) KT_TEST_WITH(kt_tmpdir_setup, kt_tmpdir_teardown, test)

#define KT_MAIN(setup, teardown)                                                                   \
    int main(void)                                                                                 \
    {                                                                                              \
        return cmocka_run_group_tests(kt_cases, setup, teardown);                                  \
    }

#endif
