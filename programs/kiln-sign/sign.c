/* Ed25519 by OpenSSL's EVP, for src/store/remote/sign.c. This file must not know what is signed. */
#include "store/remote/sign_module.h"

#include <limits.h>
#include <string.h>

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "kiln/export.h"

KILN_API const kn_sign_ops *kiln_sign_module(void);

/* OpenSSL keeps what went wrong in a list of the thread. Where this module shares OpenSSL with the
 * program, the program would take our errors for those of its own connections: every call of ours
 * begins with a mark and ends by going back to it. */
static void begin_errors(void)
{
    (void)ERR_set_mark(); /* an empty list has none: it is emptied again */
}

static void drop_errors(void)
{
    (void)ERR_pop_to_mark();
}

static bool public_of(EVP_PKEY *key, unsigned char out_public[KN_PUBLIC_KEY])
{
    size_t size = KN_PUBLIC_KEY;
    return EVP_PKEY_id(key) == EVP_PKEY_ED25519 &&
           EVP_PKEY_get_raw_public_key(key, out_public, &size) == 1 && size == KN_PUBLIC_KEY;
}

/* A key with a password is refused: a library asks nobody at a terminal. */
static int no_password(char *buffer, int size, int writing, void *user)
{
    (void)buffer;
    (void)size;
    (void)writing;
    (void)user;
    return -1;
}

static void *read_pair(const void *pem, size_t size, unsigned char out_public[KN_PUBLIC_KEY])
{
    if (size > INT_MAX) {
        return NULL;
    }
    begin_errors();
    BIO *bio = BIO_new_mem_buf(pem, (int)size);
    EVP_PKEY *key = bio != NULL ? PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL) : NULL;
    BIO_free(bio);
    if (key != NULL && !public_of(key, out_public)) {
        EVP_PKEY_free(key);
        key = NULL;
    }
    drop_errors();
    return key;
}

static bool make_pair(char out_pem[KN_SIGN_PEM], size_t *out_size,
                      unsigned char out_public[KN_PUBLIC_KEY])
{
    char *data = NULL;
    begin_errors();
    EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    BIO *bio = BIO_new(BIO_s_mem());
    const bool made = key != NULL && bio != NULL &&
                      PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) == 1 &&
                      public_of(key, out_public);
    const long size = made ? BIO_get_mem_data(bio, &data) : 0;
    const bool good = size > 0 && size <= KN_SIGN_PEM;
    *out_size = good ? (size_t)size : 0;
    if (good) {
        memcpy(out_pem, data, *out_size);
    }
    if (size > 0) {
        OPENSSL_cleanse(data, (size_t)size);
    }
    BIO_free(bio);
    EVP_PKEY_free(key);
    drop_errors();
    return good;
}

static void forget_pair(void *pair)
{
    EVP_PKEY_free(pair);
}

static bool sign_message(void *pair, const void *message, size_t size,
                         unsigned char out_signature[KN_SIGNATURE])
{
    size_t written = KN_SIGNATURE;
    begin_errors();
    EVP_MD_CTX *work = EVP_MD_CTX_new();
    const bool good = work != NULL && EVP_DigestSignInit(work, NULL, NULL, NULL, pair) == 1 &&
                      EVP_DigestSign(work, out_signature, &written, message, size) == 1 &&
                      written == KN_SIGNATURE;
    EVP_MD_CTX_free(work);
    drop_errors();
    return good;
}

static bool verify_message(const unsigned char public_key[KN_PUBLIC_KEY], const void *message,
                           size_t size, const unsigned char signature[KN_SIGNATURE])
{
    begin_errors();
    EVP_PKEY *theirs =
        EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, public_key, KN_PUBLIC_KEY);
    EVP_MD_CTX *work = EVP_MD_CTX_new();
    const bool good = theirs != NULL && work != NULL &&
                      EVP_DigestVerifyInit(work, NULL, NULL, NULL, theirs) == 1 &&
                      EVP_DigestVerify(work, signature, KN_SIGNATURE, message, size) == 1;
    EVP_MD_CTX_free(work);
    EVP_PKEY_free(theirs);
    drop_errors();
    return good;
}

static const kn_sign_ops ops = {
    .abi = KN_SIGN_ABI,
    .read = read_pair,
    .make = make_pair,
    .forget = forget_pair,
    .sign = sign_message,
    .verify = verify_message,
    .wipe = OPENSSL_cleanse,
};

const kn_sign_ops *kiln_sign_module(void)
{
    /* Without this, OpenSSL frees what it has when the process leaves, under an upload's feet. */
    return OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL) == 1 ? &ops : NULL;
}
