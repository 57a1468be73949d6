/* Which entries of a cache a pack does not take, and why. */
#ifndef KILN_PROGRAM_PACK_LEFT_OUT_H
#define KILN_PROGRAM_PACK_LEFT_OUT_H

#include <kiln/cache.h>

#include "cli/listing.h"

typedef struct left_out {
    const char *key;   /* whole, as text */
    const char *stage; /* "kiln.manifest"; "" where it could not be read */
    const char *why;
} left_out;

typedef struct left_out_list {
    const left_out *items;
    size_t count;
} left_out_list;

/* Looks at each entry of `listing`, which the pack was filled from. False: no memory. */
bool pack_left_out(kiln_cache *cache, const cli_listing *listing, left_out_list *out_list);

#endif
