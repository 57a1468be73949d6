/* The memory tier: blobs by key, bounded by bytes and by count.
 *
 * A hit takes no lock, allocates nothing, and writes no memory that other threads write, except the
 * blob's reference count where the caller wants a reference. Changes are made one at a time under a
 * mutex; what they take out is freed when no reader can still see it (readers.h).
 * What goes first is what has not been used for longest, by second chance: an entry that was hit
 * since it last came up for eviction goes back to the end of the line. Pinned entries stand in a
 * line of their own that nobody evicts from. */
#ifndef KILN_STORE_MEM_H
#define KILN_STORE_MEM_H

#include "kiln/cache.h"
#include "kiln/unstable/memory.h"

typedef struct kn_mem kn_mem;

kiln_status kn_mem_create(uint64_t max_bytes, uint32_t max_count, kn_mem **out_mem,
                          kiln_diag *diag);
/* Nobody may be reading. Blobs live on by their references. */
void kn_mem_destroy(kn_mem *mem);

/* A reference of the caller's own, or NULL. Counts the hit. */
kiln_blob *kn_mem_get(kn_mem *mem, const kiln_key *key);
/* Lets `use` work with the blob without a reference. False if there is none. Counts the hit. */
bool kn_mem_visit(kn_mem *mem, const kiln_key *key, kiln_blob_fn *use, void *user);

/* The same without counting: for what a caller did not request. */
kiln_blob *kn_mem_get_uncounted(kn_mem *mem, const kiln_key *key);

bool kn_mem_contains(kn_mem *mem, const kiln_key *key); /* counts nothing */

/* Keeps a reference, replacing what is there; what is larger than the tier is not kept. False when
 * out of memory: the tier then goes without it. */
bool kn_mem_put(kn_mem *mem, const kiln_key *key, kiln_blob *blob);
bool kn_mem_remove(kn_mem *mem, const kiln_key *key); /* whether it was there */
void kn_mem_clear(kn_mem *mem);                       /* pinned entries, too */
/* Evicts until at most so much is left, pinned entries apart, and frees what no reader holds up. */
void kn_mem_trim(kn_mem *mem, uint64_t max_bytes, uint64_t max_count);

/* Pins: an entry with at least one is never evicted and counts for the tier's size. kn_mem_pin
 * keeps `blob` whatever its size, with what it had in pins and one more; with NULL it pins only
 * what is there. Replacing an entry keeps its pins, removing it ends them. False: not there, or out
 * of memory. */
bool kn_mem_pin(kn_mem *mem, const kiln_key *key, kiln_blob *blob);
void kn_mem_unpin(kn_mem *mem, const kiln_key *key);
bool kn_mem_is_pinned(kn_mem *mem, const kiln_key *key);

/* Writes up to `room` keys that were hit since they were last returned here (or put), if that is at
 * least `age_ns` ago, and returns how many: a caller that keeps stamps elsewhere moves them
 * then. */
size_t kn_mem_take_hot(kn_mem *mem, uint64_t age_ns, kiln_key *keys, size_t room);

void kn_mem_hits(const kn_mem *mem, uint64_t *out_hits, uint64_t *out_saved_ns);
void kn_mem_size(kn_mem *mem, uint64_t *out_bytes, uint64_t *out_count);

#endif
