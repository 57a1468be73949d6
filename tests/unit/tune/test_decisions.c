/* Estimates and the search: who wins, when it stops, what a failure does. Times are made up. */
#include "tune/search.h"

#include <stdlib.h>
#include <string.h>

#include "support/cmocka.h"
#include "support/failalloc.h"

/* --- estimates -------------------------------------------------------------------------------- */

static void median_and_bounds_are_samples(void **state)
{
    uint64_t odd[] = {9, 1, 5};
    kn_estimate estimate = kn_estimate_of(odd, 3);
    assert_int_equal(estimate.median, 5);
    assert_int_equal(estimate.low, 1);
    assert_int_equal(estimate.high, 9);
    uint64_t even[] = {40, 10, 30, 20};
    assert_int_equal(kn_estimate_of(even, 4).median, 25);
    uint64_t large[] = {UINT64_MAX, UINT64_MAX - 2};
    assert_int_equal(kn_estimate_of(large, 2).median, UINT64_MAX - 1);
    assert_int_equal(kn_estimate_of(NULL, 0).high, 0);
}

/* Known values of the sign test's bounds at 99 %. */
static void bounds_hold_the_median_in_99_of_100(void **state)
{
    const size_t rows[][2] = {{0, 0},  {1, 0},  {7, 0},  {8, 0},  {10, 0}, {11, 0},
                              {12, 1}, {15, 2}, {20, 3}, {30, 7}, {50, 15}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(kn_estimate_outside(rows[i][0]), rows[i][1]);
    }
    assert_between(kn_estimate_outside(1000), 440, 470);
}

/* One slow outlier moves neither the median nor, with enough samples, the bounds. */
static void an_outlier_moves_nothing(void **state)
{
    uint64_t samples[20];
    for (size_t i = 0; i < 20; i++) {
        samples[i] = 100 + i;
    }
    samples[3] = 1000000;
    kn_estimate estimate = kn_estimate_of(samples, 20);
    assert_between(estimate.median, 105, 115);
    assert_between(estimate.high, 110, 120);
}

/* --- the search ------------------------------------------------------------------------------- */

#define CANDIDATES 4

/* Times follow a script: base, plus noise that repeats; a candidate may fail at a sample. */
typedef struct world {
    uint64_t base[CANDIDATES];
    uint64_t noise;
    uint64_t drift; /* each sample makes all later ones slower by this */
    kiln_status failure[CANDIDATES];
    uint32_t fails_at[CANDIDATES];
    uint32_t calls[CANDIDATES];
    uint32_t order[4096];
    uint32_t total, rounds;
} world;

static uint64_t clock_ns;

static uint64_t read_clock(void)
{
    return clock_ns;
}

static kiln_status measure(void *user, size_t candidate, uint64_t *out_ns)
{
    world *w = user;
    const uint64_t wobble = (uint64_t)(w->total * 7 + w->calls[candidate] * 3) % 10;
    w->order[w->total % 4096] = (uint32_t)candidate;
    if (w->failure[candidate] != KILN_OK && w->calls[candidate] == w->fails_at[candidate]) {
        return w->failure[candidate];
    }
    *out_ns = w->base[candidate] + wobble * w->noise + w->total * w->drift;
    w->calls[candidate]++;
    w->total++;
    clock_ns += *out_ns;
    return KILN_OK;
}

static void count_round(void *user, uint32_t round)
{
    world *w = user;
    assert_int_equal(round, ++w->rounds);
}

static kiln_status search_in(world *w, kn_search *search, uint64_t budget_ns)
{
    clock_ns = 0;
    assert_int_equal(kn_search_init(search, CANDIDATES, 60), KILN_OK);
    search->rounds_min = 8;
    search->budget_ns = budget_ns;
    search->measure = measure;
    search->round = count_round;
    search->user = w;
    search->now = read_clock;
    for (size_t i = 0; i < CANDIDATES; i++) {
        search->candidates[i].in = w->base[i] != 0;
    }
    return kn_search_run(search);
}

static const uint64_t ample = UINT64_MAX;

static void the_fastest_wins_and_the_slow_are_dropped_early(void **state)
{
    world w = {.base = {1000, 5000, 700, 9000}, .noise = 5};
    kn_search search;
    assert_int_equal(search_in(&w, &search, ample), KILN_OK);
    assert_int_equal(search.leader, 2);
    assert_int_equal(search.end, KN_SEARCH_AHEAD);
    assert_int_equal(search.rounds, 8); /* clear from the start: no more than the least */
    assert_int_equal(w.calls[1], KN_SEARCH_ROUNDS_LEAST);
    assert_int_equal(w.calls[3], KN_SEARCH_ROUNDS_LEAST);
    assert_true(search.candidates[1].behind && search.candidates[3].behind);
    assert_int_equal(w.calls[2], 8);
    assert_int_equal(w.rounds, 8);
    kn_search_deinit(&search);
}

/* Noise wider than the difference: more rounds, until the bounds part. */
static void close_ones_take_more_rounds(void **state)
{
    world w = {.base = {1000, 1060, 0, 0}, .noise = 10};
    kn_search search;
    assert_int_equal(search_in(&w, &search, ample), KILN_OK);
    assert_int_equal(search.leader, 0);
    assert_true(search.rounds > 8);
    assert_true(w.calls[0] > 8 && w.calls[1] > 8);
    kn_search_deinit(&search);
}

static void even_ones_end_it_and_the_baseline_wins(void **state)
{
    world w = {.base = {1001, 1000, 0, 1002}, .noise = 0};
    kn_search search;
    assert_int_equal(search_in(&w, &search, ample), KILN_OK);
    assert_int_equal(search.leader, 0); /* not 1: a thousandth is no reason */
    assert_int_equal(search.end, KN_SEARCH_EVEN);
    assert_int_equal(search.rounds, 8);
    assert_int_equal(w.calls[2], 0);
    kn_search_deinit(&search);
}

/* All get slower by and by, as a processor that gets hot: turns keep it fair. */
static void what_drifts_falls_on_all(void **state)
{
    world w = {.base = {1000, 1000, 1000, 900}, .drift = 2};
    kn_search search;
    assert_int_equal(search_in(&w, &search, ample), KILN_OK);
    assert_int_equal(search.leader, 3);
    /* each round begins with another one */
    assert_int_equal(w.order[0], 0);
    assert_int_equal(w.order[4], 1);
    assert_int_equal(w.order[8], 2);
    kn_search_deinit(&search);
}

static void time_ends_it_but_not_at_once(void **state)
{
    world w = {.base = {1000, 1001, 1003, 1002}, .noise = 40};
    kn_search search;
    assert_int_equal(search_in(&w, &search, 1), KILN_OK);
    assert_int_equal(search.end, KN_SEARCH_TIME);
    assert_int_equal(search.rounds, KN_SEARCH_ROUNDS_LEAST);
    kn_search_deinit(&search);
}

static void rounds_end_it(void **state)
{
    world w = {.base = {1000, 1001, 1003, 1002}, .noise = 40};
    kn_search search;
    assert_int_equal(search_in(&w, &search, ample), KILN_OK);
    assert_int_equal(search.end, KN_SEARCH_ROUNDS);
    assert_int_equal(search.rounds, 60);
    kn_search_deinit(&search);
}

static void who_fails_falls_out(void **state)
{
    world w = {
        .base = {1000, 500, 800, 0}, .failure = {[1] = KILN_E_INVALID}, .fails_at = {[1] = 2}};
    kn_search search;
    assert_int_equal(search_in(&w, &search, ample), KILN_OK);
    assert_int_equal(search.leader, 2);
    assert_false(search.candidates[1].in);
    assert_int_equal(search.candidates[1].status, KILN_E_INVALID);
    assert_int_equal(search.candidates[1].count, 2);
    kn_search_deinit(&search);
}

static void a_failing_baseline_and_a_lost_device_end_it(void **state)
{
    world base = {.base = {1000, 500, 0, 0}, .failure = {[0] = KILN_E_INVALID}};
    world lost = {.base = {1000, 500, 0, 0}, .failure = {[1] = KILN_E_DEVICE_LOST}};
    world none = {.base = {0, 0, 0, 0}};
    kn_search search;
    assert_int_equal(search_in(&base, &search, ample), KILN_E_INVALID);
    kn_search_deinit(&search);
    assert_int_equal(search_in(&lost, &search, ample), KILN_E_DEVICE_LOST);
    kn_search_deinit(&search);
    assert_int_equal(search_in(&none, &search, ample), KILN_E_INVALID);
    kn_search_deinit(&search);
}

static void one_alone_is_measured_for_its_time(void **state)
{
    world w = {.base = {1000, 0, 0, 0}};
    kn_search search;
    assert_int_equal(search_in(&w, &search, ample), KILN_OK);
    assert_int_equal(search.leader, 0);
    assert_int_equal(w.calls[0], 8);
    assert_int_equal(search.candidates[0].estimate.median, 1000);
    kn_search_deinit(&search);
}

static bool init_body(void *user)
{
    kn_search search;
    if (kn_search_init(&search, 5, 10) != KILN_OK) {
        return false;
    }
    kn_search_deinit(&search);
    return true;
}

static void memory_may_run_out(void **state)
{
    assert_true(kt_failalloc_each(init_body, NULL) >= 2);
    kn_search search;
    assert_int_equal(kn_search_init(&search, SIZE_MAX / 2, 60), KILN_E_NOMEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(median_and_bounds_are_samples),
        cmocka_unit_test(bounds_hold_the_median_in_99_of_100),
        cmocka_unit_test(an_outlier_moves_nothing),
        cmocka_unit_test(the_fastest_wins_and_the_slow_are_dropped_early),
        cmocka_unit_test(close_ones_take_more_rounds),
        cmocka_unit_test(even_ones_end_it_and_the_baseline_wins),
        cmocka_unit_test(what_drifts_falls_on_all),
        cmocka_unit_test(time_ends_it_but_not_at_once),
        cmocka_unit_test(rounds_end_it),
        cmocka_unit_test(who_fails_falls_out),
        cmocka_unit_test(a_failing_baseline_and_a_lost_device_end_it),
        cmocka_unit_test(one_alone_is_measured_for_its_time),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
