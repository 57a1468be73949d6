/* What a handful of noisy times says: the median, and bounds that hold it. No assumption is made on
 * how times scatter: the bounds are two of the samples themselves. */
#ifndef KILN_TUNE_ESTIMATE_H
#define KILN_TUNE_ESTIMATE_H

#include <stddef.h>
#include <stdint.h>

typedef struct kn_estimate {
    uint64_t median, low, high;
} kn_estimate;

/* Sorts `samples`. Zeros without any. */
kn_estimate kn_estimate_of(uint64_t *samples, size_t count);

/* How many samples lie below the lower bound (and as many above the upper one): the most with which
 * the bounds still hold the median in 99 of 100 cases; 0 where there are too few for that. */
size_t kn_estimate_outside(size_t count);

#endif
