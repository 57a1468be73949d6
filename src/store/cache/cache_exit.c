/* What a process has counted and not written yet when it ends without kiln_cache_destroy. The list
 * of caches is a table of atomic words: it is read while other threads run, and in a forked child
 * of which nobody knows what the parent's threads were doing. So there is no lock in it. */
#include "store/cache/cache.h"

#include <stdint.h>

#include "sys/clock.h"
#include "sys/unload.h"

#define MS UINT64_C(1000000)
#define SLOTS 64      /* caches beyond these are not flushed at the end */
#define FREE_SLOT 0u  /* else: the inverted address, so that a leak checker still sees a leak */
#define TAKEN_SLOT 1u /* flush_all is working on it */
#define PATIENCE (20 * MS)
#define LONGEST_WAIT_MS 1000

static _Atomic uintptr_t slots[SLOTS];

static uintptr_t mark_of(const kiln_cache *cache)
{
    return ~(uintptr_t)cache;
}

/* A child that has not used the cache has counted nothing: what is pending in its copy is the
 * parent's. */
static void flush_cache_at_exit(kiln_cache *cache)
{
    if (kn_fork_noticed(&cache->guard)) {
        return;
    }
    kn_loads *loads = atomic_load(&cache->loads);
    if (loads != NULL) {
        kn_loads_leave(loads);
    }
    if (cache->stats != NULL && kn_cache_writes(cache) && kn_disk_is_root_ours(cache->disk)) {
        kn_stats_flush_at_exit(cache->stats, PATIENCE);
    }
}

static void flush_all(void)
{
    for (size_t i = 0; i < SLOTS; i++) {
        uintptr_t mark = atomic_load(&slots[i]);
        if (mark != FREE_SLOT && mark != TAKEN_SLOT &&
            atomic_compare_exchange_strong(&slots[i], &mark, TAKEN_SLOT)) {
            flush_cache_at_exit((kiln_cache *)~mark);
            atomic_store(&slots[i], FREE_SLOT);
        }
    }
}

void kn_cache_enlist(kiln_cache *cache)
{
    for (size_t i = 0; i < SLOTS; i++) {
        uintptr_t mark = FREE_SLOT;
        if (atomic_compare_exchange_strong(&slots[i], &mark, mark_of(cache))) {
            cache->exit_slot = &slots[i];
            kn_unload_set(flush_all);
            return;
        }
    }
}

void kn_cache_delist(kiln_cache *cache)
{
    uintptr_t mark = mark_of(cache);
    if (cache->exit_slot == NULL ||
        atomic_compare_exchange_strong(cache->exit_slot, &mark, FREE_SLOT)) {
        return;
    }
    /* The process ends on another thread, which is flushing this cache. In a child of such a
     * process that thread does not exist: the wait is bounded. */
    for (int i = 0; atomic_load(cache->exit_slot) == TAKEN_SLOT && i < LONGEST_WAIT_MS; i++) {
        kn_clock_sleep(MS);
    }
}
