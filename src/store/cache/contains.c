/* Looking without a miss that is counted: is it there, and is there an answer worth having. */
#include "store/cache/cache.h"

#include <string.h>

void kiln_cache_contains(kiln_cache *cache, const kiln_key *keys, size_t count, bool *out_there)
{
    memset(out_there, 0, count * sizeof *out_there);
    kn_cache_check_fork(cache);
    if (cache->options.flags & (KILN_CACHE_DISABLED | KILN_CACHE_RECACHE)) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        out_there[i] =
            (cache->stack.memory != NULL && kn_mem_contains(cache->stack.memory, &keys[i])) ||
            (cache->disk != NULL && kn_disk_locate(cache->disk, &keys[i]) != NULL) ||
            kn_packs_contain(cache->packs, &keys[i]);
    }
}

kiln_status kn_cache_glance(kiln_cache *cache, const kiln_key *key, const char *target, bool far,
                            kiln_blob **out_blob, kiln_origin *out_origin)
{
    *out_blob = NULL;
    *out_origin = KILN_ORIGIN_NONE;
    kn_cache_check_fork(cache);
    if (cache->options.flags & (KILN_CACHE_DISABLED | KILN_CACHE_RECACHE)) {
        return KILN_MISS;
    }
    return kn_stack_get_note(&cache->stack, key, target, far, out_blob, out_origin);
}

kiln_status kn_cache_glance_packs(kiln_cache *cache, const kiln_key *key, kiln_blob **out_blob)
{
    *out_blob = NULL;
    kn_cache_check_fork(cache);
    if (cache->options.flags & (KILN_CACHE_DISABLED | KILN_CACHE_RECACHE)) {
        return KILN_MISS;
    }
    return kn_stack_get_mapped(&cache->stack, key, out_blob);
}

bool kn_cache_has_packs(const kiln_cache *cache)
{
    return cache->packs != NULL;
}

kiln_status kn_cache_reread(kiln_cache *cache, const kiln_key *key, kiln_blob **out_blob)
{
    kiln_origin origin = KILN_ORIGIN_NONE;
    *out_blob = NULL;
    kn_cache_check_fork(cache);
    if (cache->options.flags & (KILN_CACHE_DISABLED | KILN_CACHE_RECACHE)) {
        return KILN_MISS;
    }
    return kn_stack_get_below(&cache->stack, key, out_blob, &origin);
}

void kn_cache_count(kiln_cache *cache, enum kn_counter counter, uint64_t amount)
{
    kn_cache_check_fork(cache);
    kn_stats_add(cache->stats, counter, amount);
}
