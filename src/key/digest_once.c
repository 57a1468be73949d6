/* A digest of bytes that are all there, whichever library does the work. */
#include "key/digest.h"

#include <string.h>

bool kn_digest_bytes(kn_digest *digest, const void *data, size_t size, uint8_t out[KN_DIGEST_SIZE])
{
    kn_digest_begin(digest);
    kn_digest_update(digest, data, size);
    return kn_digest_finish(digest, out);
}

bool kn_digest_of(const void *data, size_t size, uint8_t out[KN_DIGEST_SIZE])
{
    kn_digest digest;
    memset(out, 0, KN_DIGEST_SIZE);
    bool ok = kn_digest_init(&digest);
    if (ok) {
        kn_digest_update(&digest, data, size);
        ok = kn_digest_finish(&digest, out);
    }
    kn_digest_deinit(&digest);
    return ok;
}
