/* Clocks and random bits. */
#include "sys/clock.h"

#include <time.h>

#include "support/cmocka.h"
#include "sys/random.h"

static void time_goes_on_and_sleep_takes_it(void **state)
{
    uint64_t before = kn_clock_now();
    kn_clock_sleep(2000000);
    uint64_t after = kn_clock_now();
    assert_true(after - before >= 2000000);
    kn_clock_sleep(0);
}

static void the_wall_clock_agrees_with_libc(void **state)
{
    int64_t seconds = kn_clock_wall() / 1000000000;
    int64_t now = (int64_t)time(NULL);
    assert_between(now - seconds, -5, 5);
}

static void random_numbers_differ(void **state)
{
    uint64_t seen[64];
    for (size_t i = 0; i < 64; i++) {
        seen[i] = kn_random_u64();
        for (size_t j = 0; j < i; j++) {
            assert_true(seen[i] != seen[j]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_goes_on_and_sleep_takes_it),
        cmocka_unit_test(the_wall_clock_agrees_with_libc),
        cmocka_unit_test(random_numbers_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
