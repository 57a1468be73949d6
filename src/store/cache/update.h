/* Changing an entry that others change at the same time: what is read, changed and written is never
 * an entry that another thread or process of this host replaces in between. The lock is that of
 * single flight: the kernel frees it when its holder is killed, and a holder that is stopped is
 * passed over. Where a file system has no locks, a change may be lost. */
#ifndef KILN_STORE_UPDATE_H
#define KILN_STORE_UPDATE_H

#include "store/cache/cache.h"

/* Makes the new entry of the old one (NULL: there is none). *out_new NULL: it stays as it is. */
typedef struct kn_cache_change {
    kiln_status (*change)(void *user, const kiln_blob *old, kiln_blob **out_new, kiln_diag *diag);
    void *user;
} kn_cache_change;

/* Waits at most `patience_ns` for others, and then goes on without them. Memory does not keep what
 * is written. Fails: what `change` returns, and what kiln_cache_put does. Threads: any. */
kiln_status kn_cache_update(kiln_cache *cache, const kiln_recipe *recipe, uint64_t patience_ns,
                            const kn_cache_change *change, kiln_diag *diag);

#endif
