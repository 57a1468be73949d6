/* What a tier below the memory is: a place that keeps entries by key. The stack
 * (store/cache/stack.h) asks tiers in order, promotes what a lower one has, writes to all that take
 * writes, and counts; a tier does none of that and knows no other tier. */
#ifndef KILN_STORE_TIER_H
#define KILN_STORE_TIER_H

#include "kiln/cache.h"

#include "base/span.h"

enum {
    KN_TIER_WRITES = 1u << 0, /* put and remove may be called; without it they are NULL */
    KN_TIER_STAYS = 1u << 1,  /* near and lasting: what it has is not copied to the tiers above */
    KN_TIER_FAR = 1u << 2, /* over the network: no place for notes of one machine; counts itself */
};

#define KN_TIER_LACKS_NS UINT64_C(100000000)

typedef struct kn_tier_put {
    const kiln_key *key;
    const char *target;
    kn_span recipe;
    kiln_blob *blob;
    bool below; /* memory does not keep it: this process does not ask for it again */
    bool copy;  /* of what another tier has */
} kn_tier_put;

typedef struct kn_tier_ops {
    const char *name;
    kiln_origin origin;
    uint32_t caps;
    /* The verified entry, as a reference of the caller's. `target` NULL: not known. KILN_MISS;
     * KILN_E_CORRUPT (a miss: dropped, where the tier takes writes); KILN_E_IO and others (a miss).
     */
    kiln_status (*get)(void *self, const kiln_key *key, const char *target, kiln_blob **out_blob,
                       kiln_diag *diag);
    /* True if the tier had nothing like it a moment ago (KN_TIER_LACKS_NS), which it knows without
     * looking: one that KN_TIER_STAYS is asked first then. `target` is known. May be NULL. */
    bool (*lacks)(void *self, const kiln_key *key, const char *target);
    /* Stores or replaces. Any failure leaves what was there, or nothing. */
    kiln_status (*put)(void *self, const kn_tier_put *what, kiln_diag *diag);
    /* KILN_MISS if it was not there. */
    kiln_status (*remove)(void *self, const kiln_key *key, kiln_diag *diag);
    void (*close)(void *self);
} kn_tier_ops;

typedef struct kn_tier {
    const kn_tier_ops *ops;
    void *self;
} kn_tier;

#endif
