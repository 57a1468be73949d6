/* XXH3-128 through libxxhash, by its run-time dispatch where the library has one: the plain entry
 * point is the SSE2 build, three times slower than what the processor can do. Entries that lie in
 * one piece, which is every one that is read, go through a build of our own for the widest vectors.
 */
#define XXH_STATIC_LINKING_ONLY
#include "store/format/checksum.h"

#ifdef KILN_XXH_DISPATCH
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#define XXH3_128bits_dispatch XXH3_128bits
#define XXH3_128bits_update_dispatch XXH3_128bits_update
#endif

#include "sys/processor.h"

void kn_checksum(const kn_span *parts, size_t count, unsigned char out[KN_CHECKSUM_SIZE])
{
    XXH128_hash_t hash;
#ifdef KILN_XXH_AVX512
    if (count == 1 && kn_processor_has_avx512f()) {
        kn_checksum_avx512(parts[0].data, parts[0].length, out);
        return;
    }
#endif
    if (count == 1) {
        hash = XXH3_128bits_dispatch(parts[0].data, parts[0].length);
    } else {
        XXH3_state_t state;
        /* Neither call fails with a valid state and valid pointers. */
        (void)XXH3_128bits_reset(&state);
        for (size_t i = 0; i < count; i++) {
            if (parts[i].length > 0) {
                (void)XXH3_128bits_update_dispatch(&state, parts[i].data, parts[i].length);
            }
        }
        hash = XXH3_128bits_digest(&state);
    }
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, hash);
    memcpy(out, canonical.digest, KN_CHECKSUM_SIZE);
}
