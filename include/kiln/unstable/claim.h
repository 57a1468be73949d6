/* Claims: single flight for those who compile between a lookup and a store, because the program
 * that they serve has a cache of two calls, get and put. Who compiles in a callback uses
 * kiln_cache_get_or_compile, which cannot forget to end.
 *
 *     switch (kiln_cache_claim(cache, recipe, NULL, &blob, &claim, NULL, &diag)) {
 *     case KILN_OK:
 *         ... use the blob
 *     case KILN_MISS:
 *         ... compile, which gives a blob, or
 *         kiln_claim_abandon(claim);
 *         ...
 *         status = kiln_claim_fulfil(claim, blob, &diag);
 *     default:
 *         ... compile without the cache
 *     }
 *
 * While a claim is open, other processes of this host that claim the same recipe wait: until it is
 * fulfilled (they get the blob) or abandoned, or its process exits or is killed; until the process
 * has shown no activity for four seconds (it is stopped); and for `wait_ms` at most. Those who
 * waited and found no blob compile, all at once: what one could not make, the next one probably
 * cannot either.
 *
 * A claim only saves work, and never holds a program up for ever:
 *  - Threads of the claimant's process, and processes that descend from it, never wait for it: it
 *    may be waiting for them. They compile.
 *  - A thread that has a claim never waits for another one, nor in kiln_cache_get_or_compile: of
 * two processes that claim the same two recipes in opposite orders none waits for ever. To wait,
 * end the first claim before the next. This is known of claims of one cache object.
 *  - Where the result could not be handed over (the cache is off, read-only, without a disk tier,
 * or its disk is full; the file system has no locks) nobody waits. Which of these it is, the caller
 * need not know: KILN_MISS comes with a claim in every case.
 *
 * After a fork the parent's claims are the parent's: the child may fulfil its copies, which stores
 * the blob, and abandon them; the parent's stay open. */
#ifndef KILN_UNSTABLE_CLAIM_H
#define KILN_UNSTABLE_CLAIM_H

#include "kiln/cache.h"
#include "kiln/unstable/binding.h"

KILN_BEGIN_DECLS

typedef struct kiln_claim kiln_claim; /* until fulfil or abandon */

/* How to claim. Set struct_size; zeros are the defaults. */
typedef struct kiln_claim_options {
    size_t struct_size;
    uint32_t wait_ms; /* longest wait for another process's claim or compile; 0: the cache's, which
                         is 10 minutes unless its options say otherwise */
    kiln_interrupted_fn *interrupted; /* ends that wait; NULL: nothing does */
    void *user;                       /* of `interrupted` */
} kiln_claim_options;

/* Looks a recipe up in every tier, and claims it if it is not there. `options` NULL: the defaults.
 * Threads: any.   Blocks: disk, network (remotes), another process's compile, as said above.
 * Owns: copies the recipe. With KILN_OK *out_blob is yours, kiln_blob_release(). With KILN_MISS
 * *out_claim is yours: end it with kiln_claim_fulfil or kiln_claim_abandon, from any thread, before
 * the cache is destroyed. The other is NULL, and both are in all other cases. `out_origin` may be
 * NULL; KILN_ORIGIN_NONE without a blob.
 * Fails: KILN_MISS (no diag): nobody has it, compile. KILN_E_CANCELLED when interrupted,
 * KILN_E_INVALID (options, or a recipe to which a field could not be added), KILN_E_NOMEM. */
KILN_API KILN_MUST_CHECK kiln_status kiln_cache_claim(kiln_cache *cache, const kiln_recipe *recipe,
                                                      const kiln_claim_options *options,
                                                      kiln_blob **out_blob, kiln_claim **out_claim,
                                                      kiln_origin *out_origin, kiln_diag *diag);

/* Stores what was compiled under the claim's recipe, with the time since the claim as its compile
 * time unless the blob has one, and hands it to those who wait. It ends the claim in every case;
 * NULL does nothing.
 * Threads: any, one at a time per claim.   Blocks: disk.
 * Owns: takes the claim; borrows the blob, to which the memory tier keeps a reference.
 * Fails: KILN_E_INVALID (an empty payload: a failure is never stored). Errors of the store are
 * counted and logged, and KILN_OK returned. */
KILN_API KILN_MUST_CHECK kiln_status kiln_claim_fulfil(kiln_claim *claim, kiln_blob *blob,
                                                       kiln_diag *diag);

/* Ends a claim without a result: the compile failed, or its result is not for the cache. NULL does
 * nothing.
 * Threads: any, one at a time per claim.   Blocks: never.
 * Owns: takes the claim.   Fails: never. */
KILN_API void kiln_claim_abandon(kiln_claim *claim);

KILN_END_DECLS

#endif
