/* Compiles that bypass the cache: counted, listed by reason, and reported to the process that pays
 * for them. */
#include <stdlib.h>

#include "base/diag.h"
#include "base/log.h"
#include "store/cache/cache.h"
#include "store/disk/bypasses.h"

/* A program whose log nobody reads pays at every start and nobody knows. So the second process that
 * pays for a reason says so where lines of the log go by default; once for a cache directory. */
static void record_bypass(kiln_cache *cache, const char *what, const char *reason, uint64_t took_ns)
{
    if (kn_cache_writes(cache) && kn_disk_check_root(cache->disk, NULL) == KILN_OK &&
        kn_bypasses_add(cache->root, what, reason, took_ns) && !kn_log_enabled(KILN_LOG_WARN) &&
        !atomic_exchange(&cache->told_bypass, true)) {
        kn_log_unasked(
            "%s bypasses the cache and is compiled at every start: %s (%.3f s this time; see "
            "`kiln stats`)",
            what, reason, (double)took_ns / 1e9);
    }
}

void kn_cache_count_bypass(kiln_cache *cache, const char *what, const char *reason,
                           uint64_t took_ns)
{
    kn_cache_check_fork(cache);
    kn_stats_add(cache->stats, KN_COUNT_bypassed, 1);
    kn_stats_add(cache->stats, KN_COUNT_bypass_ns, took_ns);
    kn_log_once(KILN_LOG_WARN, "%s bypasses the cache: %s", what, reason);
    record_bypass(cache, what, reason, took_ns);
    kn_cache_flush(cache);
}

void kiln_cache_count_bypass(kiln_cache *cache, const char *what, const char *reason)
{
    kn_cache_count_bypass(cache, what, reason, 0);
}

/* What cost most comes first. */
static int compare_rows(const void *left, const void *right)
{
    const kn_bypass_row *a = left;
    const kn_bypass_row *b = right;
    if (a->time_ns != b->time_ns) {
        return a->time_ns > b->time_ns ? -1 : 1;
    }
    return a->count > b->count ? -1 : a->count < b->count;
}

kiln_status kiln_cache_walk_bypasses(kiln_cache *cache, kiln_bypass_fn *visit, void *user,
                                     kiln_diag *diag)
{
    kn_cache_check_fork(cache);
    kn_bypass_row *rows = calloc(KN_BYPASS_ROWS, sizeof *rows);
    if (rows == NULL) {
        return kn_no_memory(diag, "listing bypasses");
    }
    const size_t count = kn_bypasses_read(cache->root, rows);
    kiln_status status = KILN_OK;
    if (count > 1) {
        qsort(rows, count, sizeof *rows, compare_rows);
    }
    for (size_t i = 0; status == KILN_OK && i < count; i++) {
        const kiln_bypass bypass = {.struct_size = sizeof bypass,
                                    .reason = rows[i].reason,
                                    .what = rows[i].what,
                                    .count = rows[i].count,
                                    .time_ns = rows[i].time_ns,
                                    .last_ns = rows[i].last_ns};
        status = visit(user, &bypass);
    }
    free(rows);
    return status;
}
