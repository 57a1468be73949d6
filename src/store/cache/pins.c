/* What a host program says about its entries: memory pressure, pins; and the stamps of what is hot
 * in memory. */
#include <string.h>

#include "base/diag.h"
#include "store/cache/cache.h"
#include "store/format/blob.h"
#include "sys/clock.h"

#define STAMP_LOOK_NS UINT64_C(300000000000) /* 5 minutes */
#define STAMP_BATCH 64

void kn_cache_flush_rarely(kiln_cache *cache)
{
    /* Below a root that was exchanged for a stranger's nothing is written. */
    if (kn_stats_is_due(cache->stats) && kn_disk_check_root(cache->disk, NULL) == KILN_OK) {
        kn_stats_flush_rarely(cache->stats);
    }
    kn_cache_stamp(cache, false);
}

void kn_cache_stamp(kiln_cache *cache, bool now)
{
    kiln_key keys[STAMP_BATCH];
    size_t count = 0;
    uint64_t time = kn_clock_now();
    uint64_t last = atomic_load_explicit(&cache->stamped_at, memory_order_relaxed);
    if (!kn_cache_writes(cache) || (!now && time - last < STAMP_LOOK_NS) ||
        !atomic_compare_exchange_strong(&cache->stamped_at, &last, time)) {
        return;
    }
    do {
        count = kn_mem_take_hot(cache->stack.memory, (uint64_t)KN_HOUR_NS, keys, STAMP_BATCH);
        for (size_t i = 0; i < count; i++) {
            kn_disk_stamp(cache->disk, &keys[i]);
        }
    } while (count == STAMP_BATCH);
}

void kiln_cache_trim(kiln_cache *cache, uint64_t target_bytes)
{
    kn_cache_check_fork(cache);
    kn_cache_stamp(cache, true);
    if (cache->stack.memory != NULL) {
        kn_mem_trim(cache->stack.memory, target_bytes, UINT64_MAX);
    }
}

kiln_status kiln_cache_pin(kiln_cache *cache, const kiln_key *key, kiln_diag *diag)
{
    kiln_blob *blob = NULL;
    kiln_origin origin;
    kn_cache_check_fork(cache);
    if (cache->options.flags & KILN_CACHE_DISABLED) {
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, NULL, "pinning an entry",
                             "the cache is turned off");
    }
    if (kn_mem_pin(cache->stack.memory, key, NULL)) {
        return KILN_OK;
    }
    kiln_status status = kn_stack_get(&cache->stack, key, NULL, &blob, &origin);
    if (status != KILN_OK) {
        return status;
    }
    if (!kn_mem_pin(cache->stack.memory, key, blob)) {
        status = kn_no_memory(diag, "pinning an entry");
    }
    kiln_blob_release(blob);
    return status;
}

void kiln_cache_unpin(kiln_cache *cache, const kiln_key *key)
{
    kn_cache_check_fork(cache);
    if (cache->stack.memory != NULL) {
        kn_mem_unpin(cache->stack.memory, key);
    }
}

void kiln_cache_on_progress(kiln_cache *cache, kiln_cache_progress_fn *progress, void *user)
{
    kn_cache_check_fork(cache);
    cache->progress = progress;
    cache->progress_user = user;
    if (cache->disk != NULL) {
        cache->disk->progress = progress;
        cache->disk->progress_user = user;
    }
}
