/* Order statistics. */
#include "tune/estimate.h"

#include <stdlib.h>

static const double doubt = 0.01;

static int compare_samples(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left;
    const uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* The median lies below the k-th of n sorted samples with the chance of fewer than k heads in n
 * throws of a coin; twice that for both sides. */
size_t kn_estimate_outside(size_t count)
{
    double chance = 1.0; /* of exactly `outside` heads; no zero below a thousand throws */
    for (size_t i = 0; i < count; i++) {
        chance /= 2;
    }
    double sum = 0.0;
    size_t outside = 0;
    while (outside < count / 2) {
        sum += chance;
        if (2 * sum > doubt) {
            break;
        }
        chance = chance * (double)(count - outside) / (double)(outside + 1);
        outside++;
    }
    return outside > 0 ? outside - 1 : 0;
}

kn_estimate kn_estimate_of(uint64_t *samples, size_t count)
{
    kn_estimate estimate = {0, 0, 0};
    if (count == 0) {
        return estimate;
    }
    qsort(samples, count, sizeof(*samples), compare_samples);
    const size_t outside = kn_estimate_outside(count);
    const uint64_t below = samples[(count - 1) / 2];
    estimate.median = below + (samples[count / 2] - below) / 2;
    estimate.low = samples[outside];
    estimate.high = samples[count - 1 - outside];
    return estimate;
}
