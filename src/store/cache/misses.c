/* Counts misses, each with its reason. */
#include "store/cache/cache.h"
#include "store/disk/kin.h"
#include "store/disk/losses.h"

static enum kn_counter counter_of(kiln_why why)
{
    switch (why) {
    case KILN_WHY_OPTIONS:
    case KILN_WHY_ENTRY:
        return KN_COUNT_misses_options;
    case KILN_WHY_HEADER:
        return KN_COUNT_misses_header;
    case KILN_WHY_DRIVER:
        return KN_COUNT_misses_driver;
    case KILN_WHY_ENVIRONMENT:
    case KILN_WHY_STAGE:
        return KN_COUNT_misses_other;
    default:
        return KN_COUNT_misses_new;
    }
}

static enum kn_counter reason_of(const kiln_cache *cache, const kiln_key *key, kn_span recipe)
{
    switch (kn_losses_find(cache->root, key)) {
    case KN_LOSS_EVICTED:
        return KN_COUNT_misses_evicted;
    case KN_LOSS_CORRUPT:
        return KN_COUNT_misses_corrupt;
    case KN_LOSS_NONE:
        break;
    }
    return counter_of(recipe.length > 0 ? kn_kin_find(cache->root, recipe) : KILN_WHY_NEW);
}

void kn_cache_count_miss(kiln_cache *cache, const kiln_key *key, kn_span recipe, bool note)
{
    kn_stats_add(cache->stats, note ? KN_COUNT_note_misses : KN_COUNT_misses, 1);
    /* Where nothing is looked up a miss has no other reason. */
    if (!note && !(cache->options.flags & (KILN_CACHE_DISABLED | KILN_CACHE_RECACHE))) {
        kn_stats_add(cache->stats, reason_of(cache, key, recipe), 1);
    }
}
