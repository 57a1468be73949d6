/* Which entries the memory tier holds: pinned, trimmed under memory pressure, used without a
 * reference. */
#ifndef KILN_UNSTABLE_MEMORY_H
#define KILN_UNSTABLE_MEMORY_H

#include "kiln/cache.h"

KILN_BEGIN_DECLS

/* Looks an entry up and lets `use` work with it, without a reference: the fastest way to a hit,
 * for in memory it touches nothing that another thread writes. The blob is valid during the call
 * (retain it to keep it); `use` may call anything, but memory of entries that are evicted
 * meanwhile is freed only after it has returned.
 * Threads: any.   Blocks: disk, `use`.   Owns: nothing.
 * Fails: KILN_MISS (no diag), as kiln_cache_get. */
typedef void kiln_blob_fn(void *user, kiln_blob *blob);
KILN_API KILN_MUST_CHECK kiln_status kiln_cache_use(kiln_cache *cache, const kiln_key *key,
                                                    kiln_blob_fn *use, void *user,
                                                    kiln_origin *out_origin, kiln_diag *diag);

/* Memory pressure: evicts from memory what has not been used for longest, until at most
 * `target_bytes` are held (0: everything but pinned entries), and frees what nobody uses. What is
 * on disk stays there.
 * Threads: any.   Blocks: disk (stamps).   Owns: nothing.   Fails: never. */
KILN_API void kiln_cache_trim(kiln_cache *cache, uint64_t target_bytes);

/* Pins an entry: from now on this cache object evicts it neither from memory (it is read into it,
 * and counts for its size) nor from disk, and its stamp on disk is kept fresh. Pins are counted;
 * each needs its unpin, and all end with the cache, with kiln_cache_remove and with
 * kiln_cache_clear; a forked child starts without. Other processes know nothing of them: they may
 * evict the file, though as one of the last, for its stamp is fresh; this process goes on with what
 * it has in memory.
 * Threads: any.   Blocks: disk.   Owns: nothing.
 * Fails: KILN_MISS (no diag) if no tier has the entry, KILN_E_UNSUPPORTED when the cache is
 * disabled, KILN_E_NOMEM. Unpinning what is not pinned does nothing. */
KILN_API KILN_MUST_CHECK kiln_status kiln_cache_pin(kiln_cache *cache, const kiln_key *key,
                                                    kiln_diag *diag);
KILN_API void kiln_cache_unpin(kiln_cache *cache, const kiln_key *key);

KILN_END_DECLS

#endif
