/* How long PoCL's programs may be read at the end, for given times. */
#include <stdlib.h>

#include "apis/opencl/dropin/budget.h"
#include "support/cmocka.h"

#define MS 1000000ull
#define START (1000000 * MS)

/* The figures are the process's: one test, in order. */
static void reads_stay_within_their_share(void **state)
{
    assert_false(kn_opencl_budget_allows(1, START)); /* nothing has been built */
    kn_opencl_budget_earn(1000 * MS, START + 1000 * MS);
    assert_false(kn_opencl_budget_allows(201 * MS, START + 10000 * MS));
    assert_true(kn_opencl_budget_allows(200 * MS, START + 10000 * MS));
    /* The time counts from the first build. */
    kn_opencl_budget_earn(1000 * MS, START + 8000 * MS);
    assert_true(kn_opencl_budget_allows(200 * MS, START + 10000 * MS));
    /* It took twice as long as expected, and so may the others. */
    kn_opencl_budget_spend(50 * MS, 100 * MS);
    assert_false(kn_opencl_budget_allows(51 * MS, START + 10000 * MS));
    assert_true(kn_opencl_budget_allows(50 * MS, START + 10000 * MS));
    /* What was read counts for the rest. */
    kn_opencl_budget_spend(50 * MS, 100 * MS);
    assert_false(kn_opencl_budget_allows(1 * MS, START + 10000 * MS));
    assert_true(kn_opencl_budget_allows(100 * MS, START + 20000 * MS));
    assert_false(kn_opencl_budget_allows(101 * MS, START + 20000 * MS));
}

/* Whatever was estimated: with the estimates two and a half times too small, no process is longer
 * than 1.05 times its time. */
static void K13_a_wrong_estimate_stays_within_a_twentieth(void **state)
{
    for (uint64_t passed = 100; passed < 1000000; passed *= 3) {
        const uint64_t now = START + 1000000 * MS + passed * MS;
        uint64_t expected = 0;
        for (uint64_t step = (uint64_t)1 << 40; step > 0; step /= 2) {
            expected += kn_opencl_budget_allows(expected + step, now) ? step : 0;
        }
        assert_true(expected * 5 / 2 <= (now - START) / 20);
    }
}

static void only_a_wish_lifts_it(void **state)
{
    assert_false(kn_opencl_budget_is_lifted());
    assert_int_equal(setenv("KILN_CAPTURE", "0", 1), 0);
    assert_false(kn_opencl_budget_is_lifted());
    assert_int_equal(setenv("KILN_CAPTURE", "1", 1), 0);
    assert_true(kn_opencl_budget_is_lifted());
    assert_int_equal(unsetenv("KILN_CAPTURE"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_stay_within_their_share),
        cmocka_unit_test(K13_a_wrong_estimate_stays_within_a_twentieth),
        cmocka_unit_test(only_a_wish_lifts_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
