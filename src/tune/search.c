/* Rounds, and who is left. */
#include "tune/search.h"

#include <stdlib.h>

#include "base/checked.h"

/* Medians so near to each other are even: no launch is ever that regular. */
static const double even = 1.02;
/* With few samples only what is this much slower is clearly behind. */
static const double far_behind = 1.5;

kiln_status kn_search_init(kn_search *search, size_t count, uint32_t rounds_max)
{
    size_t samples = 0;
    *search = (kn_search){.count = count, .rounds_max = rounds_max, .end = KN_SEARCH_ROUNDS};
    if (!kn_mul_size(count, rounds_max, &samples)) {
        return KILN_E_NOMEM;
    }
    search->candidates = (kn_candidate *)calloc(count, sizeof(*search->candidates));
    search->samples = (uint64_t *)calloc(samples, sizeof(*search->samples));
    if (search->candidates == NULL || search->samples == NULL) {
        kn_search_deinit(search);
        return KILN_E_NOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        search->candidates[i].in = true;
        search->candidates[i].samples = search->samples + i * rounds_max;
    }
    return KILN_OK;
}

void kn_search_deinit(kn_search *search)
{
    free(search->candidates);
    free(search->samples);
    search->candidates = NULL;
    search->samples = NULL;
    search->count = 0;
}

static kiln_status measure_one(kn_search *search, size_t index)
{
    kn_candidate *candidate = &search->candidates[index];
    uint64_t ns = 0;
    kiln_status status = search->measure(search->user, index, &ns);
    if (status == KILN_OK) {
        candidate->samples[candidate->count++] = ns;
        return KILN_OK;
    }
    candidate->in = false;
    candidate->status = status;
    const bool fatal = status == KILN_E_DEVICE_LOST || status == KILN_E_NOMEM;
    return fatal || index == search->baseline ? status : KILN_OK;
}

static kiln_status run_round(kn_search *search)
{
    kiln_status status = KILN_OK;
    for (size_t i = 0; i < search->count && status == KILN_OK; i++) {
        const size_t index = (i + search->rounds) % search->count;
        if (search->candidates[index].in) {
            status = measure_one(search, index);
        }
    }
    search->rounds++;
    return status;
}

/* The candidate with the least median among those that are in; `count` if there is none. */
static size_t find_leader(kn_search *search)
{
    size_t leader = search->count;
    for (size_t i = 0; i < search->count; i++) {
        kn_candidate *candidate = &search->candidates[i];
        if (!candidate->in) {
            continue;
        }
        candidate->estimate = kn_estimate_of(candidate->samples, candidate->count);
        if (leader == search->count ||
            candidate->estimate.median < search->candidates[leader].estimate.median) {
            leader = i;
        }
    }
    return leader;
}

/* Takes out what is clearly behind the leader; returns how many are left next to it. */
static size_t drop_behind(kn_search *search, size_t leader)
{
    const kn_estimate *best = &search->candidates[leader].estimate;
    const double factor = search->rounds < search->rounds_min ? far_behind : even;
    size_t left = 0;
    for (size_t i = 0; i < search->count; i++) {
        kn_candidate *candidate = &search->candidates[i];
        if (i == leader || !candidate->in) {
            continue;
        }
        if ((double)candidate->estimate.low > factor * (double)best->high) {
            candidate->in = false;
            candidate->behind = true;
        } else {
            left++;
        }
    }
    return left;
}

/* All that are left have their bounds within a hair of the leader's median. */
static bool are_even(const kn_search *search, size_t leader)
{
    const double median = (double)search->candidates[leader].estimate.median;
    for (size_t i = 0; i < search->count; i++) {
        const kn_candidate *candidate = &search->candidates[i];
        if (candidate->in && ((double)candidate->estimate.high > even * median ||
                              (double)candidate->estimate.low * even < median)) {
            return false;
        }
    }
    return true;
}

/* True when the search is over, and why. */
static bool is_over(kn_search *search, size_t left, uint64_t start)
{
    if (left == 0) {
        search->end = KN_SEARCH_AHEAD;
        return search->rounds >= search->rounds_min;
    }
    if (search->rounds >= search->rounds_min && are_even(search, search->leader)) {
        search->end = KN_SEARCH_EVEN;
        return true;
    }
    if (search->now() - start >= search->budget_ns) {
        search->end = KN_SEARCH_TIME;
        return true;
    }
    search->end = KN_SEARCH_ROUNDS;
    return false;
}

/* The baseline, where the leader is not worth leaving it. */
static size_t choose_next(const kn_search *search, size_t leader)
{
    const kn_candidate *base = &search->candidates[search->baseline];
    const double best = (double)search->candidates[leader].estimate.median;
    const bool near = base->in && (double)base->estimate.median <= even * best;
    return near ? search->baseline : leader;
}

kiln_status kn_search_run(kn_search *search)
{
    const uint64_t start = search->now();
    bool over = false;
    while (!over && search->rounds < search->rounds_max) {
        kiln_status status = run_round(search);
        if (status != KILN_OK) {
            return status;
        }
        if (search->round != NULL) {
            search->round(search->user, search->rounds);
        }
        search->leader = find_leader(search);
        if (search->leader == search->count) {
            return KILN_E_INVALID;
        }
        if (search->rounds >= KN_SEARCH_ROUNDS_LEAST) {
            over = is_over(search, drop_behind(search, search->leader), start);
        }
    }
    search->leader = choose_next(search, search->leader);
    return KILN_OK;
}
