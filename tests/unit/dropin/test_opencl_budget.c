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
static void reads_stay_within_their_share(void **state)
{
    (void)state;
    assert_true(kn_opencl_budget_allows(4000 * MS, START)); /* the first, whatever it takes */
    assert_false(kn_opencl_budget_allows_new(201 * MS, START));
    assert_true(kn_opencl_budget_allows_new(200 * MS, START));
    kn_opencl_budget_earn(1000 * MS, START + 1000 * MS);
    assert_int_equal(kn_opencl_budget_began(), START);
    /* One that nobody has built before: a twentieth. */
    assert_false(kn_opencl_budget_allows_new(500 * MS, START + 9999 * MS));
    assert_true(kn_opencl_budget_allows_new(500 * MS, START + 10000 * MS));
    /* And where no author has asked for a cache: a fiftieth, and nothing for free. */
    assert_false(kn_opencl_budget_allows_unasked(1 * MS, START));
    assert_false(kn_opencl_budget_allows_unasked(201 * MS, START + 10000 * MS));
    assert_true(kn_opencl_budget_allows_unasked(200 * MS, START + 10000 * MS));
    /* It took twice as long as expected, and so may the others. */
    kn_opencl_budget_spend(50 * MS, 100 * MS);
    assert_false(kn_opencl_budget_allows_new(51 * MS, START + 4000 * MS));
    assert_true(kn_opencl_budget_allows_new(50 * MS, START + 4000 * MS));
    /* After 1 s: a quarter is 250 ms. */
    assert_true(kn_opencl_budget_allows(50 * MS, START + 1000 * MS));
    assert_false(kn_opencl_budget_allows(100 * MS, START + 1000 * MS));
    /* A process that has run for longer may take longer, */
    assert_true(kn_opencl_budget_allows(100 * MS, START + 2000 * MS));
    /* but never longer than its builds took. */
    assert_true(kn_opencl_budget_allows(450 * MS, START + 3600000 * MS));
    assert_false(kn_opencl_budget_allows(451 * MS, START + 3600000 * MS));
    kn_opencl_budget_earn(500 * MS, START + 3600000 * MS);
    assert_true(kn_opencl_budget_allows(500 * MS, START + 3600000 * MS));
    /* What was read counts for the rest. */
    kn_opencl_budget_spend(700 * MS, 1300 * MS);
    assert_false(kn_opencl_budget_allows(100 * MS, START + 3600000 * MS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_stay_within_their_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
