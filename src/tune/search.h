/* Which of several candidates is fastest, with as few measurements as that takes. Knows neither
 * what a candidate is nor how it is measured.
 *
 * Rounds: in each, every candidate that is still in is measured once, in turns that begin with
 * another one each time, so that what changes over time (clocks, heat, other work) falls on all. A
 * candidate whose lower bound is well over the leader's upper bound is clearly behind, and measured
 * no more. The search ends when one is clearly ahead of all others, when those left are even, after
 * rounds_max, or when the time is up. */
#ifndef KILN_TUNE_SEARCH_H
#define KILN_TUNE_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kiln/status.h"

#include "tune/estimate.h"

/* No candidate is dropped, and no time is up, before so many rounds. */
#define KN_SEARCH_ROUNDS_LEAST 5u

typedef struct kn_candidate {
    bool in;            /* to be measured; the caller says which */
    bool behind;        /* was, until it was clearly behind */
    kiln_status status; /* why it fell out, if measuring it failed */
    uint32_t count;     /* samples */
    uint64_t *samples;
    kn_estimate estimate;
} kn_candidate;

/* Measures one candidate once. A failure takes the candidate out; its reason is the caller's to
 * keep. KILN_E_DEVICE_LOST and KILN_E_NOMEM end the search. */
typedef kiln_status kn_measure_fn(void *user, size_t candidate, uint64_t *out_ns);
/* Called after each round. */
typedef void kn_round_fn(void *user, uint32_t round);

typedef enum kn_search_end {
    KN_SEARCH_AHEAD, /* one is clearly ahead, or only one was in */
    KN_SEARCH_EVEN,  /* those left are even */
    KN_SEARCH_ROUNDS,
    KN_SEARCH_TIME,
} kn_search_end;

typedef struct kn_search {
    uint32_t rounds_min; /* samples before one can be clearly ahead by a little */
    uint32_t rounds_max; /* at most 1000: what kn_estimate_outside knows */
    uint64_t budget_ns;  /* by the clock below */
    size_t baseline;     /* wins a tie; it may not fail */
    kn_measure_fn *measure;
    kn_round_fn *round; /* may be NULL */
    void *user;
    uint64_t (*now)(void);

    kn_candidate *candidates;
    size_t count;
    uint64_t *samples; /* of all */
    uint32_t rounds;   /* made */
    kn_search_end end;
    size_t leader;
} kn_search;

/* Allocates `count` candidates, all in. KILN_E_NOMEM. */
kiln_status kn_search_init(kn_search *search, size_t count, uint32_t rounds_max);
void kn_search_deinit(kn_search *search);

/* Fills estimates, `end`, and `leader`: the candidate to choose. The baseline is chosen over one
 * that is faster by less than can matter. Fails as `measure` does with the baseline or the device;
 * KILN_E_INVALID if nothing is in. */
kiln_status kn_search_run(kn_search *search);

#endif
