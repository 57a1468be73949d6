/* The remotes of a cache: those that KILN_REMOTE names, in order, with one idea of what to trust.
 */
#ifndef KILN_STORE_REMOTES_H
#define KILN_STORE_REMOTES_H

#include "store/format/stats.h"
#include "store/format/tier.h"
#include "store/remote/remote.h"

typedef struct kn_remotes {
    kn_trust trust;
    kn_remote *list[KN_REMOTES_MAX]; /* owned by the stack once they are in it */
    size_t count;
    const char *root; /* of the cache on disk, borrowed; NULL: none */
} kn_remotes;

/* Opens every remote of the list. One whose module is missing is a warning and left out; a URL, or
 * a key file, that is wrong is KILN_E_INVALID. *out_remotes is NULL for an empty list. Nothing is
 * asked of a server yet. `root` (may be NULL) is the directory whose processes share leases; it
 * must outlive the remotes. */
kiln_status kn_remotes_open(const char *list, kn_stats *stats, const char *root,
                            kn_remotes **out_remotes, kiln_diag *diag);
/* One of them, for a stack that closes it from then on. */
kn_tier kn_remotes_tier(const kn_remotes *remotes, size_t index);
/* The stack has been given the first `count`; the others are closed. `taken`: it took them all;
 * otherwise none is asked any more. NULL is fine, here and below. */
void kn_remotes_given(kn_remotes *remotes, size_t count, bool taken);
/* After the stack is gone. */
void kn_remotes_destroy(kn_remotes *remotes);
/* Waits for uploads of each, and goes on. */
void kn_remotes_flush(kn_remotes *remotes);
/* The end: waits for uploads once, for all remotes together at most the longest `flush`. */
void kn_remotes_finish(kn_remotes *remotes);

/* One compile over all machines: waits until the first remote that has leases gives one for this
 * key, and looks meanwhile whether the entry has come. `alone`: the caller has this host's lock of
 * the key, so that a lease which another process with the same root still has is a dead one's, or
 * one's that was passed over: it is taken over at once. KILN_OK: held until kn_remotes_lease_drop.
 * KILN_MISS: `look` found it. Others: go on without. */
typedef bool kn_remotes_look(void *user);
kiln_status kn_remotes_lease(kn_remotes *remotes, const kiln_key *key, bool alone,
                             uint64_t deadline, kn_remotes_look *look, void *user);
void kn_remotes_lease_drop(kn_remotes *remotes, const kiln_key *key);

#endif
