/* The stack: memory in front, tiers behind it in order. It promotes what a lower tier has to all
 * above, writes through to all that take writes, and owns the counting. The memory is not a tier
 * like the others: a hit there must not cost an indirect call. */
#ifndef KILN_STORE_STACK_H
#define KILN_STORE_STACK_H

#include "kiln/cache.h"

#include <stdatomic.h>

#include "store/format/stats.h"
#include "store/format/tier.h"
#include "store/memory/mem.h"

#define KN_STACK_TIERS 8

typedef struct kn_stack {
    kn_mem *memory; /* NULL: no memory tier */
    kn_tier tiers[KN_STACK_TIERS];
    size_t count;
    kn_stats *stats;
    _Atomic uint32_t told; /* what was logged: a bit for each tier and kind of error */
} kn_stack;

/* Appends a tier below the others and owns it from then on. KILN_E_INVALID when there are too many
 * (the tier is closed then). */
kiln_status kn_stack_add(kn_stack *stack, kn_tier tier, kiln_diag *diag);
/* Closes the tiers, destroys the memory. */
void kn_stack_deinit(kn_stack *stack);

/* A hit is counted; a miss is not (the caller knows what it means). `target` may be NULL. KILN_OK
 * or KILN_MISS: errors of a tier are counted, logged once and skipped. */
kiln_status kn_stack_get(kn_stack *stack, const kiln_key *key, const char *target,
                         kiln_blob **out_blob, kiln_origin *out_origin);
/* The same without tiers over the network. */
kiln_status kn_stack_get_near(kn_stack *stack, const kiln_key *key, const char *target,
                              kiln_blob **out_blob, kiln_origin *out_origin);
/* Memory is asked last: for what others may have replaced since it came there. */
kiln_status kn_stack_get_below(kn_stack *stack, const kiln_key *key, kiln_blob **out_blob,
                               kiln_origin *out_origin);
/* kn_stack_get for what is not a caller's kernel but kiln's own, and counted apart: notes about
 * this machine, tunings. Asks tiers over the network only if it may go `far`. */
kiln_status kn_stack_get_note(kn_stack *stack, const kiln_key *key, const char *target, bool far,
                              kiln_blob **out_blob, kiln_origin *out_origin);
/* kn_stack_get_note of what lies in a tier that keeps it near and mapped (a pack), and nowhere
 * else: no system call, and no copy in memory. */
kiln_status kn_stack_get_mapped(kn_stack *stack, const kiln_key *key, kiln_blob **out_blob);
/* Stores in memory and, with `write`, in all tiers that take writes; errors are counted, logged
 * once and skipped. */
void kn_stack_put(kn_stack *stack, const kn_tier_put *what, bool write);
/* KILN_MISS if nobody had it; KILN_E_IO if one could not drop it. */
kiln_status kn_stack_remove(kn_stack *stack, const kiln_key *key, kiln_diag *diag);

#endif
