/* A cache's counters as members of a struct, so that tests can compare many of them at once. */
#ifndef KILN_TESTS_COUNTERS_H
#define KILN_TESTS_COUNTERS_H

#include <kiln/cache.h>
#include <kiln/unstable/counters.h>

typedef struct kt_counters {
#define KT_COUNTER_FIELD(id, name, unit, text) uint64_t name;
    KILN_COUNTER_MAP(KT_COUNTER_FIELD)
#undef KT_COUNTER_FIELD
} kt_counters;

static inline void kt_counters_own(const kiln_cache *cache, kt_counters *out_own)
{
#define KT_COUNTER_OWN(id, name, unit, text) out_own->name = kiln_cache_counter(cache, id);
    KILN_COUNTER_MAP(KT_COUNTER_OWN)
#undef KT_COUNTER_OWN
}

static inline kiln_status kt_counters_total(kiln_cache *cache, kt_counters *out_total,
                                            kiln_diag *diag)
{
    uint64_t values[KILN_COUNTERS];
    const kiln_status status = kiln_cache_get_totals(cache, values, KILN_COUNTERS, diag);
#define KT_COUNTER_TOTAL(id, name, unit, text) out_total->name = values[id];
    KILN_COUNTER_MAP(KT_COUNTER_TOTAL)
#undef KT_COUNTER_TOTAL
    return status;
}

#endif
