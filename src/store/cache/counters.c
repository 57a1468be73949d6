/* Counters by their ids: of this cache object, and of all processes that used its disk root. */
#include <string.h>

#include "base/checked.h"
#include "store/cache/cache.h"
#include "store/format/stats.h"

/* What a counter is called, what it counts, and what a table says of it. */
static const struct {
    const char *name, *unit, *text;
} counters[] = {
#define COUNTER_ROW(id, name, unit, text) [id] = {#name, (unit), (text)},
    KILN_COUNTER_MAP(COUNTER_ROW)
#undef COUNTER_ROW
};

const char *kiln_counter_name(uint32_t counter)
{
    return counter < KILN_COUNTERS ? counters[counter].name : NULL;
}

const char *kiln_counter_unit(uint32_t counter)
{
    return counter < KILN_COUNTERS ? counters[counter].unit : NULL;
}

const char *kiln_counter_text(uint32_t counter)
{
    return counter < KILN_COUNTERS ? counters[counter].text : NULL;
}

uint64_t kiln_cache_counter(const kiln_cache *cache, uint32_t counter)
{
    return cache->stats != NULL && counter < KILN_COUNTERS
               ? kn_stats_own(cache->stats, (enum kn_counter)counter)
               : 0;
}

/* Adds what makes them zero, as any other addition: what others add meanwhile is not lost. */
kiln_status kiln_cache_zero_totals(kiln_cache *cache, kiln_diag *diag)
{
    uint64_t values[KILN_COUNTERS];
    kn_cache_check_fork(cache);
    kiln_status status = kn_cache_need_disk(cache, true, diag);
    if (status == KILN_OK) {
        status = kiln_cache_get_totals(cache, values, KILN_COUNTERS, diag);
    }
    if (status != KILN_OK) {
        return status;
    }
    for (size_t i = 0; i < KILN_COUNTERS; i++) {
        kn_stats_add(cache->stats, (enum kn_counter)i, 0 - values[i]);
    }
    status = kn_stats_flush(cache->stats, KN_CACHE_PATIENCE, NULL, diag);
    return status == KILN_OK || diag == NULL || diag->status != KILN_OK
               ? status
               : kiln_diag_set(diag, status, "try again", "setting the counters to zero",
                               "other processes hold them");
}

kiln_status kiln_cache_get_totals(kiln_cache *cache, uint64_t *out_values, size_t count,
                                  kiln_diag *diag)
{
    kn_record record;
    memset(out_values, 0, count * sizeof(*out_values));
    kn_cache_check_fork(cache);
    if (cache->disk == NULL) {
        return KILN_OK;
    }
    kiln_status status = KILN_MISS;
    if (kn_cache_root_stands(cache)) {
        status = kn_stats_flush(cache->stats, KN_CACHE_PATIENCE, &record, NULL);
    }
    if (status != KILN_OK) {
        status = kn_stats_read(cache->stats, &record, diag);
    }
    if (status == KILN_E_CORRUPT) {
        return KILN_E_IO;
    }
    const size_t known = count < KILN_COUNTERS ? count : KILN_COUNTERS;
    memcpy(out_values, record.counters, known * sizeof(*out_values));
    return status;
}
