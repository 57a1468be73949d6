/* SHA-256 by Nettle: as fast as OpenSSL within a seventh, and loaded in a tenth of a millisecond
 * (docs/decisions/0019-sha256-by-nettle.md). This file must not know what is digested. */
#include "key/digest.h"

#include <stdlib.h>
#include <string.h>

#include <nettle/sha2.h>
#include <nettle/version.h>

bool kn_digest_init(kn_digest *digest)
{
    digest->context = malloc(sizeof(struct sha256_ctx));
    kn_digest_begin(digest);
    return !digest->failed;
}

void kn_digest_deinit(kn_digest *digest)
{
    free(digest->context);
    digest->context = NULL;
    digest->failed = true;
}

void kn_digest_begin(kn_digest *digest)
{
    digest->failed = digest->context == NULL;
    if (!digest->failed) {
        sha256_init((struct sha256_ctx *)digest->context);
    }
}

void kn_digest_update(kn_digest *digest, const void *data, size_t size)
{
    if (!digest->failed && size != 0) {
        sha256_update((struct sha256_ctx *)digest->context, size, (const uint8_t *)data);
    }
}

bool kn_digest_finish(kn_digest *digest, uint8_t out[KN_DIGEST_SIZE])
{
    if (digest->failed) {
        memset(out, 0, KN_DIGEST_SIZE);
        return false;
    }
#if NETTLE_VERSION_MAJOR >= 4 /* which writes all of it, always */
    sha256_digest((struct sha256_ctx *)digest->context, out);
#else
    sha256_digest((struct sha256_ctx *)digest->context, KN_DIGEST_SIZE, out);
#endif
    return true;
}
