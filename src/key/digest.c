/* SHA-256 by Nettle: as fast as OpenSSL within a seventh, and loaded in a tenth of a millisecond
 * (docs/decisions/0019-sha256-by-nettle.md). This file must not know what is digested. */
#include "key/digest.h"

#include <string.h>

#include <nettle/sha2.h>
#include <nettle/version.h>

_Static_assert(sizeof(struct sha256_ctx) <= sizeof(((kn_digest *)0)->context),
               "the context is too small");

static struct sha256_ctx *nettle_context(kn_digest *digest)
{
    return (struct sha256_ctx *)(void *)digest->context;
}

bool kn_digest_init(kn_digest *digest)
{
    digest->ready = true;
    kn_digest_begin(digest);
    return true;
}

void kn_digest_deinit(kn_digest *digest)
{
    digest->ready = false;
    digest->failed = true;
}

void kn_digest_begin(kn_digest *digest)
{
    digest->failed = !digest->ready;
    if (!digest->failed) {
        sha256_init(nettle_context(digest));
    }
}

void kn_digest_update(kn_digest *digest, const void *data, size_t size)
{
    if (!digest->failed && size != 0) {
        sha256_update(nettle_context(digest), size, (const uint8_t *)data);
    }
}

bool kn_digest_finish(kn_digest *digest, uint8_t out[KN_DIGEST_SIZE])
{
    if (digest->failed) {
        memset(out, 0, KN_DIGEST_SIZE);
        return false;
    }
#if NETTLE_VERSION_MAJOR >= 4 /* which writes all of it, always */
    sha256_digest(nettle_context(digest), out);
#else
    sha256_digest(nettle_context(digest), KN_DIGEST_SIZE, out);
#endif
    return true;
}

bool kn_digest_peek(const kn_digest *digest, uint8_t out[KN_DIGEST_SIZE])
{
    kn_digest copy = *digest;
    return kn_digest_finish(&copy, out);
}
