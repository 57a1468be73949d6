/* The entries of a cache, collected from a walk: for the commands that sort or search them. */
#ifndef KILN_PROGRAM_LISTING_H
#define KILN_PROGRAM_LISTING_H

#include <kiln/cache.h>

#include "cli/pool.h"

typedef struct listing_entry {
    char key[KILN_KEY_TEXT_SIZE];
    const char *target;
    uint64_t stored_size;
    int64_t used_ns;
} listing_entry;

typedef struct cli_listing {
    cli_pool *pool;
    listing_entry *entries; /* last used first, then by key */
    size_t count, capacity;
    uint64_t bytes;      /* of the files */
    uint64_t disk_bytes; /* that they take: whole blocks, as the limits count them */
} cli_listing;

/* Lists the entries of `target` (NULL: all). */
kiln_status listing_make(kiln_cache *cache, const char *target, cli_pool *pool,
                         cli_listing *out_listing, kiln_diag *diag);

/* The one entry whose key begins with `prefix`. KILN_E_INVALID: not hexadecimal, too short, or more
 * than one begins so. KILN_MISS with a diag: none does. */
kiln_status listing_find(const cli_listing *listing, const char *prefix, kiln_key *out_key,
                         kiln_diag *diag);

#endif
