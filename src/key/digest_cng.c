/* SHA-256 by Windows itself (CNG): takes the place of digest.c there. This file must not know what
 * is digested. */
#include "key/digest.h"

#include <stdlib.h>
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

bool kn_digest_init(kn_digest *digest)
{
    context *made = (context *)calloc(1, sizeof(*made));
    digest->context = made;
    digest->failed = made == NULL || BCryptCreateHash(BCRYPT_SHA256_ALG_HANDLE, &made->hash, NULL,
                                                      0, NULL, 0, BCRYPT_HASH_REUSABLE_FLAG) != 0;
    return !digest->failed;
}

void kn_digest_deinit(kn_digest *digest)
{
    context *old = (context *)digest->context;
    if (old != NULL && old->hash != NULL) {
        (void)BCryptDestroyHash(old->hash);
    }
    free(old);
    digest->context = NULL;
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
    context *own = (context *)digest->context;
    digest->failed =
        own == NULL || own->hash == NULL || (own->begun && !finish_digest(own, unused));
}

void kn_digest_update(kn_digest *digest, const void *data, size_t size)
{
    context *own = (context *)digest->context;
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
        digest->failed = !finish_digest((context *)digest->context, out);
    }
    if (digest->failed) {
        memset(out, 0, KN_DIGEST_SIZE);
    }
    return !digest->failed;
}
