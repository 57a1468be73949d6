/* Loads that are watched: the table of the disk tier, opened at the first one. This file must not
 * know what a driver does. */
#include "store/cache/cache.h"

#include "base/log.h"

/* NULL where nothing can be noted: without a disk tier, where it is only read, on Windows. Who asks
 * ahead of the first load, and finds no root yet, leaves it to that. */
static kn_loads *open_loads(kiln_cache *cache, bool ahead)
{
    kn_mutex_lock(&cache->loads_mutex);
    if (!cache->loads_tried) {
        const bool stands = kn_cache_root_stands(cache);
        cache->loads_tried = stands || !ahead;
        atomic_store(&cache->loads, stands ? kn_loads_open(cache->root) : NULL);
    }
    kn_mutex_unlock(&cache->loads_mutex);
    return atomic_load(&cache->loads);
}

void kn_cache_load_prepare(kiln_cache *cache)
{
    kn_cache_check_fork(cache);
    (void)open_loads(cache, true);
}

static kn_loads *find_loads(kiln_cache *cache)
{
    kn_cache_check_fork(cache);
    kn_loads *loads = atomic_load(&cache->loads);
    return loads != NULL ? loads : open_loads(cache, false);
}

bool kn_cache_load_begin(kiln_cache *cache, const kiln_key *key, const char *what,
                         kn_load *out_load)
{
    *out_load = (kn_load){.cell = 0};
    kn_loads *loads = find_loads(cache);
    if (loads == NULL || kn_loads_begin(loads, key, KN_LOADS_IN_A_ROW, out_load)) {
        return true;
    }
    kn_stats_add(cache->stats, KN_COUNT_unended, 1);
    kn_log(KILN_LOG_WARN,
           "%s: %u processes in a row ended while the driver loaded its cached binary; it is "
           "compiled again",
           what, KN_LOADS_IN_A_ROW);
    return false;
}

bool kn_cache_open_begin(kiln_cache *cache, const kiln_key *key, kn_load *out_load)
{
    *out_load = (kn_load){.cell = 0};
    kn_loads *loads = find_loads(cache);
    return loads == NULL ||
           (kn_loads_begin(loads, key, KN_LOADS_IN_A_ROW, out_load) && !out_load->suspect);
}

void kn_cache_load_cancel(kiln_cache *cache, const kn_load *load)
{
    kn_loads *loads = atomic_load(&cache->loads);
    if (loads != NULL && !kn_fork_noticed(&cache->guard)) {
        kn_loads_cancel(loads, load);
    }
}

void kn_cache_load_end(kiln_cache *cache, const kiln_key *key, const kn_load *load)
{
    kn_loads *loads = atomic_load(&cache->loads);
    /* It was there before the load, or there is nothing to end. A driver that forks in a load and
     * comes back in the child as well has marked it for the parent: the child has no such page. */
    if (loads != NULL && !kn_fork_noticed(&cache->guard)) {
        kn_loads_end(loads, key, load);
    }
}

/* Never the key of a load of the same entry. */
static kiln_key key_of_work(const kiln_key *key)
{
    static const char mark[] = "unasked";
    kiln_key other = *key;
    for (size_t i = 0; i < sizeof(mark) - 1; i++) {
        other.bytes[i] = (unsigned char)(other.bytes[i] ^ (unsigned char)mark[i]);
    }
    return other;
}

bool kn_cache_work_begin(kiln_cache *cache, const kiln_key *key, const char *what,
                         kn_cache_work *out_work)
{
    *out_work = (kn_cache_work){.key = key_of_work(key)};
    kn_loads *loads = find_loads(cache);
    if (loads == NULL || kn_loads_begin(loads, &out_work->key, 1, &out_work->load)) {
        return true;
    }
    kn_log(KILN_LOG_WARN,
           "%s: a process ended while kiln read its binary; it is not read for a day", what);
    return false;
}

void kn_cache_work_end(kiln_cache *cache, const kn_cache_work *work)
{
    kn_cache_load_end(cache, &work->key, &work->load);
}
