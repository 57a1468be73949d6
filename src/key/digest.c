/* SHA-256 through OpenSSL's EVP. Must not know what is digested. */
#include "key/digest.h"

#include <string.h>

#include <openssl/evp.h>

bool kn_digest_init(kn_digest *digest)
{
    /* The context keeps its own reference to the algorithm: with EVP_sha256() each use would look
     * the algorithm up again, which costs more than digesting a short recipe. */
    EVP_MD *algorithm = EVP_MD_fetch(NULL, "SHA256", NULL);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool ready =
        algorithm != NULL && context != NULL && EVP_DigestInit_ex2(context, algorithm, NULL) == 1;
    EVP_MD_free(algorithm);
    if (!ready) {
        EVP_MD_CTX_free(context);
        context = NULL;
    }
    digest->context = context;
    digest->failed = !ready;
    return ready;
}

void kn_digest_deinit(kn_digest *digest)
{
    EVP_MD_CTX_free((EVP_MD_CTX *)digest->context);
    digest->context = NULL;
    digest->failed = true;
}

void kn_digest_begin(kn_digest *digest)
{
    EVP_MD_CTX *context = (EVP_MD_CTX *)digest->context;
    digest->failed = context == NULL || EVP_DigestInit_ex2(context, NULL, NULL) != 1;
}

void kn_digest_update(kn_digest *digest, const void *data, size_t size)
{
    if (!digest->failed && size != 0) {
        digest->failed = EVP_DigestUpdate((EVP_MD_CTX *)digest->context, data, size) != 1;
    }
}

bool kn_digest_finish(kn_digest *digest, uint8_t out[KN_DIGEST_SIZE])
{
    unsigned int size = KN_DIGEST_SIZE;
    if (!digest->failed) {
        digest->failed = EVP_DigestFinal_ex((EVP_MD_CTX *)digest->context, out, &size) != 1;
    }
    if (digest->failed) {
        memset(out, 0, KN_DIGEST_SIZE);
    }
    return !digest->failed;
}

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
    if (!kn_digest_init(&digest)) {
        return false;
    }
    kn_digest_update(&digest, data, size);
    bool ok = kn_digest_finish(&digest, out);
    kn_digest_deinit(&digest);
    return ok;
}
