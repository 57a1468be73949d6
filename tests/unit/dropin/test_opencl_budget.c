/* How long PoCL's programs may be read at the end, for given times. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dropin/opencl_budget.h"

#define MS 1000000ull
#define START (1000000 * MS)

/* The figures are the process's: one test, in order. */
static void reads_stay_within_a_quarter_and_within_the_builds(void **state)
{
    (void)state;
    assert_true(kn_opencl_budget_allows(8, START)); /* the first, whatever it takes */
    kn_opencl_budget_earn(1000 * MS, START + 1000 * MS);
    kn_opencl_budget_spend(1, 100 * MS);
    /* After 1 s: a quarter is 250 ms, and a kernel takes 100. */
    assert_true(kn_opencl_budget_allows(1, START + 1000 * MS));
    assert_false(kn_opencl_budget_allows(2, START + 1000 * MS));
    /* A process that has run for longer may take longer, */
    assert_true(kn_opencl_budget_allows(2, START + 2000 * MS));
    /* but never longer than its builds took. */
    assert_true(kn_opencl_budget_allows(9, START + 3600000 * MS));
    assert_false(kn_opencl_budget_allows(10, START + 3600000 * MS));
    kn_opencl_budget_earn(500 * MS, START + 3600000 * MS);
    assert_true(kn_opencl_budget_allows(10, START + 3600000 * MS));
    /* What was read counts for the rest. */
    kn_opencl_budget_spend(9, 1300 * MS);
    assert_false(kn_opencl_budget_allows(1, START + 3600000 * MS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_stay_within_a_quarter_and_within_the_builds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
