/* SHA-256 by Windows itself (CNG): takes the place of digest.c there. This file must not know what
 * is digested. */
#include "key/digest.h"

#include <string.h>

#include <windef.h>

#include <bcrypt.h>

#ifndef BCRYPT_SHA256_ALG_HANDLE /* older headers; the system has it since Windows 10 */
#define BCRYPT_SHA256_ALG_HANDLE ((BCRYPT_ALG_HANDLE)(uintptr_t)0x41)
#endif
#define MAX_UPDATE ((size_t)1 << 30)

typedef struct context {
    BCRYPT_HASH_HANDLE hash;
    bool begun; /* something is in it */
} context;

_Static_assert(sizeof(context) <= sizeof(((kn_digest *)0)->context), "the context is too small");

static context *hash_of_digest(kn_digest *digest)
{
    return (context *)(void *)digest->context;
}

bool kn_digest_init(kn_digest *digest)
{
    context *own = hash_of_digest(digest);
    *own = (context){NULL, false};
    digest->ready = BCryptCreateHash(BCRYPT_SHA256_ALG_HANDLE, &own->hash, NULL, 0, NULL, 0,
                                     BCRYPT_HASH_REUSABLE_FLAG) == 0;
    digest->failed = !digest->ready;
    return digest->ready;
}

void kn_digest_deinit(kn_digest *digest)
{
    if (digest->ready) {
        (void)BCryptDestroyHash(hash_of_digest(digest)->hash);
    }
    digest->ready = false;
    digest->failed = true;
}

/* To finish is the one way to begin again. */
static bool finish_digest(context *digest, uint8_t out[KN_DIGEST_SIZE])
{
    digest->begun = false;
    return BCryptFinishHash(digest->hash, out, KN_DIGEST_SIZE, 0) == 0;
}

void kn_digest_begin(kn_digest *digest)
{
    uint8_t unused[KN_DIGEST_SIZE];
    context *own = hash_of_digest(digest);
    digest->failed = !digest->ready || (own->begun && !finish_digest(own, unused));
}

void kn_digest_update(kn_digest *digest, const void *data, size_t size)
{
    context *own = hash_of_digest(digest);
    const unsigned char *from = data;
    while (!digest->failed && size != 0) {
        size_t part = size < MAX_UPDATE ? size : MAX_UPDATE;
        own->begun = true;
        /* The type is not const; the bytes are only read. */
        digest->failed = BCryptHashData(own->hash, (PUCHAR)(uintptr_t)from, (ULONG)part, 0) != 0;
        from += part;
        size -= part;
    }
}

bool kn_digest_finish(kn_digest *digest, uint8_t out[KN_DIGEST_SIZE])
{
    if (!digest->failed) {
        digest->failed = !finish_digest(hash_of_digest(digest), out);
    }
    if (digest->failed) {
        memset(out, 0, KN_DIGEST_SIZE);
    }
    return !digest->failed;
}

bool kn_digest_peek(const kn_digest *digest, uint8_t out[KN_DIGEST_SIZE])
{
    const context *own = (const context *)(const void *)digest->context;
    kn_digest copy = {.ready = false, .failed = true};
    context *made = hash_of_digest(&copy);
    copy.ready = !digest->failed && BCryptDuplicateHash(own->hash, &made->hash, NULL, 0, 0) == 0;
    copy.failed = !copy.ready;
    const bool good = kn_digest_finish(&copy, out);
    kn_digest_deinit(&copy);
    return good;
}
