/* XXH3-128 out of xxHash's header, for the vectors that the including file is compiled for. Nothing
 * is linked: a library that libkiln needs is searched for each symbol of each driver that is loaded
 * later. Only checksum.c and checksum_*.c include this file. */
#ifndef KILN_STORE_CHECKSUM_BUILD_H
#define KILN_STORE_CHECKSUM_BUILD_H

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "store/format/checksum.h"

static inline void checksum_here(const kn_span *parts, size_t count,
                                 unsigned char out[KN_CHECKSUM_SIZE])
{
    XXH128_hash_t hash;
    XXH128_canonical_t canonical;
    if (count == 1) {
        hash = XXH3_128bits(parts[0].data, parts[0].length);
    } else {
        XXH3_state_t state;
        /* Neither call fails with a valid state and valid pointers. */
        (void)XXH3_128bits_reset(&state);
        for (size_t i = 0; i < count; i++) {
            if (parts[i].length > 0) {
                (void)XXH3_128bits_update(&state, parts[i].data, parts[i].length);
            }
        }
        hash = XXH3_128bits_digest(&state);
    }
    XXH128_canonicalFromHash(&canonical, hash);
    memcpy(out, canonical.digest, KN_CHECKSUM_SIZE);
}

#endif
