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

/* By line: cmocka passes over those that are empty. */
static struct CMUnitTest kt_cases[700];

#define KT_TEST_WITH(setup, teardown, test)                                                        \
    static void test(__attribute__((unused)) void **state);                                        \
    __attribute__((constructor)) static void list_##test(void)                                     \
    {                                                                                              \
        kt_cases[__LINE__] =                                                                       \
            (struct CMUnitTest)cmocka_unit_test_setup_teardown(test, setup, teardown);             \
    }                                                                                              \
    static void test(__attribute__((unused)) void **state)

#define KT_TEST(test) KT_TEST_WITH(NULL, NULL, test)
#define KT_TEST_IN_DIR(test) KT_TEST_WITH(kt_tmpdir_setup, kt_tmpdir_teardown, test)

#define KT_MAIN(setup, teardown)                                                                   \
    int main(void)                                                                                 \
    {                                                                                              \
        return cmocka_run_group_tests(kt_cases, setup, teardown);                                  \
    }

#endif
