/* What a situation adds to a cache's counters, the same for each frontend. */
#ifndef KILN_TESTS_ENGINE_COUNTS_H
#define KILN_TESTS_ENGINE_COUNTS_H

#include "support/cmocka.h"
#include "support/counters.h"

typedef struct kt_counts {
    uint64_t hits, misses, compiles, failures, rejected, bypassed, puts, put_failures, unended;
    uint64_t recorded;
} kt_counts;

static inline kt_counts kt_count(const kiln_cache *cache)
{
    kt_counters own;
    kt_counters_own(cache, &own);
    return (kt_counts){.hits = own.hits_memory + own.hits_disk + own.hits_shared,
                       .misses = own.misses,
                       .compiles = own.compiles,
                       .failures = own.compile_failures,
                       .rejected = own.rejected,
                       .bypassed = own.bypassed,
                       .puts = own.puts,
                       .put_failures = own.put_failures,
                       .unended = own.unended,
                       .recorded = own.recorded};
}

/* Fails and names the first counter that differs. */
static inline void kt_check_counts(const char *situation, kt_counts found, kt_counts expected)
{
    const uint64_t *have = (const uint64_t *)&found;
    const uint64_t *want = (const uint64_t *)&expected;
    for (size_t i = 0; i < sizeof(kt_counts) / sizeof(uint64_t); i++) {
        if (have[i] != want[i]) {
            fail_msg("%s: counter %zu is %llu, not %llu", situation, i, (unsigned long long)have[i],
                     (unsigned long long)want[i]);
        }
    }
}

#define MISS .misses = 1, .compiles = 1
#define TWICE .misses = 2, .compiles = 2
#define HIT .hits = 1

#endif
