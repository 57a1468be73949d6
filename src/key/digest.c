/* SHA-256 through OpenSSL's low-level calls: EVP would first set up OpenSSL's providers and read
 * its configuration, 1 ms of every process that does nothing else with OpenSSL
 * (docs/decisions/0005-sha256-without-providers.md). This file must not know what is digested. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "key/digest.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/sha.h>

bool kn_digest_init(kn_digest *digest)
{
    SHA256_CTX *context = (SHA256_CTX *)malloc(sizeof(*context));
    digest->context = context;
    digest->failed = context == NULL || SHA256_Init(context) != 1;
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
    SHA256_CTX *context = (SHA256_CTX *)digest->context;
    digest->failed = context == NULL || SHA256_Init(context) != 1;
}

void kn_digest_update(kn_digest *digest, const void *data, size_t size)
{
    if (!digest->failed && size != 0) {
        digest->failed = SHA256_Update((SHA256_CTX *)digest->context, data, size) != 1;
    }
}

bool kn_digest_finish(kn_digest *digest, uint8_t out[KN_DIGEST_SIZE])
{
    if (!digest->failed) {
        digest->failed = SHA256_Final(out, (SHA256_CTX *)digest->context) != 1;
    }
    if (digest->failed) {
        memset(out, 0, KN_DIGEST_SIZE);
    }
    return !digest->failed;
}
