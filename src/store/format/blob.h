/* Blobs inside the library; the public half is in kiln/cache.h.
 *
 * A blob's bytes lie in memory exactly as they lie in an entry file (entry.h): payload, zeros up to
 * a multiple of 16, facts, zeros up to a multiple of 16. So a file that was read becomes a blob
 * without a copy, and a blob is written without one. */
#ifndef KILN_STORE_BLOB_H
#define KILN_STORE_BLOB_H

#include "kiln/cache.h"
#include "kiln/unstable/admin.h"

#include <stdatomic.h>

#include "base/span.h"

#define KN_BLOB_ALIGN 16

struct kiln_blob {
    _Atomic size_t references;
    _Atomic uint64_t compile_ns; /* set when the compile is over, at most once */
    const char *data;
    size_t size;
    const char *facts;
    size_t facts_size;
    kn_span recipe; /* of the entry it was read from; empty otherwise */
    void *memory;   /* what holds all of it; NULL: `owner` does, or what holds the blob itself */
    size_t memory_size;
    void *owner; /* what the bytes are lent from, given back with the last reference; or NULL */
    void (*give_back)(void *owner);
};

/* Rounds up to KN_BLOB_ALIGN; false on overflow. */
bool kn_blob_padded(size_t size, size_t *out_padded);
/* Payload to the end of the facts, padding included. */
kn_span kn_blob_body(const kiln_blob *blob);
/* Body and recipe of one that was read: they lie next to each other. */
kn_span kn_blob_whole(const kiln_blob *blob);
/* What the memory tier counts for it. */
size_t kn_blob_weight(const kiln_blob *blob);

/* A blob of `memory` (malloc'ed, taken over on success) that holds a body at `offset`. */
kiln_status kn_blob_adopt(void *memory, size_t memory_size, size_t offset, size_t size,
                          size_t facts_size, kiln_blob **out_blob, kiln_diag *diag);

/* The same for memory whose first KN_BLOB_ROOM bytes are free: the blob is made in them. */
#define KN_BLOB_ROOM sizeof(kiln_blob)
kiln_blob *kn_blob_adopt_in(void *memory, size_t memory_size, size_t offset, size_t size,
                            size_t facts_size);

#endif
