/* Signs and verifies with OpenSSL's EVP. This file must not know what an entry looks like. */
#include "store/remote/sign.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "base/diag.h"
#include "base/text.h"
#include "key/digest.h"
#include "sys/file.h"
#include "sys/publish.h"

#define KEY_FILE_LIMIT ((size_t)16 << 10)
#define MAY_OTHERS_READ 077u

static const char context[] = "kiln-entry-signature 1\n";
#define CONTEXT_SIZE (sizeof context - 1)
#define MESSAGE_SIZE (CONTEXT_SIZE + 32 + KN_DIGEST_SIZE)

struct kn_signer {
    EVP_PKEY *own; /* NULL: verifies only */
    kn_public_key own_public;
    size_t count;
    kn_public_key trusted[KN_TRUSTED_MAX + 1];
};

static bool make_message(const kiln_key *key, kn_span entry, unsigned char out[MESSAGE_SIZE])
{
    memcpy(out, context, CONTEXT_SIZE);
    memcpy(out + CONTEXT_SIZE, key->bytes, 32);
    return kn_digest_of(entry.data, entry.length, out + CONTEXT_SIZE + 32);
}

/* OpenSSL keeps what went wrong in a list of the thread, where a program that uses it for its own
 * connections would take ours for theirs: every call of ours begins with a mark and ends by going
 * back to it. */
static void begin_errors(void)
{
    (void)ERR_set_mark(); /* an empty list has none: it is emptied again */
}

static void drop_errors(void)
{
    (void)ERR_pop_to_mark();
}

/* --- key files -------------------------------------------------------------------------------- */

static bool public_of(EVP_PKEY *key, kn_public_key *out_public)
{
    size_t size = sizeof out_public->bytes;
    return EVP_PKEY_id(key) == EVP_PKEY_ED25519 &&
           EVP_PKEY_get_raw_public_key(key, out_public->bytes, &size) == 1 &&
           size == sizeof out_public->bytes;
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

static kiln_status load_private(const char *path, EVP_PKEY **out_key, kn_public_key *out_public,
                                kiln_diag *diag)
{
    void *data = NULL;
    size_t size = 0;
    kn_file_facts facts;
    *out_key = NULL;
    kiln_status status = kn_file_read(path, KEY_FILE_LIMIT, false, &data, &size, &facts, diag);
    if (status != KILN_OK) {
        return kiln_diag_set(diag, status == KILN_E_NOMEM ? status : KILN_E_INVALID,
                             "make one with kiln key generate", path,
                             "the signing key cannot be read");
    }
    if (facts.mode & MAY_OTHERS_READ) {
        free(data);
        return kiln_diag_set(diag, KILN_E_INVALID, "run chmod 600 on it", path,
                             "others may read or change this signing key");
    }
    begin_errors();
    BIO *bio = BIO_new_mem_buf(data, (int)size);
    EVP_PKEY *key = bio != NULL ? PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL) : NULL;
    BIO_free(bio);
    OPENSSL_cleanse(data, size);
    free(data);
    const bool good = key != NULL && public_of(key, out_public);
    drop_errors();
    if (!good) {
        EVP_PKEY_free(key);
        return kiln_diag_set(diag, KILN_E_INVALID, "make one with kiln key generate", path,
                             "it is not an Ed25519 private key in PEM without a password");
    }
    *out_key = key;
    return KILN_OK;
}

static kiln_status publish_key(const char *path, const char *data, size_t size, kiln_diag *diag)
{
    kn_publish publish;
    char *folder = kn_path_folder(path);
    kiln_status status = folder != NULL ? kn_publish_begin_unnamed(&publish, folder, path, diag)
                                        : kn_no_memory(diag, path);
    if (status == KILN_OK) {
        kn_publish_write(&publish, data, size);
        kn_publish_insist(&publish);
        status = kn_publish_commit(&publish, true, diag);
    }
    free(folder);
    return status;
}

kiln_status kn_sign_generate(const char *path, kn_public_key *out_public, kiln_diag *diag)
{
    kn_file_facts facts;
    memset(out_public, 0, sizeof *out_public);
    if (kn_file_stat(path, false, &facts, NULL) != KILN_MISS) {
        return kiln_diag_set(diag, KILN_E_INVALID, "choose another name", path,
                             "the file exists; refusing to overwrite a key");
    }
    char *data = NULL;
    begin_errors();
    EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    BIO *bio = BIO_new(BIO_s_mem());
    bool made = key != NULL && bio != NULL &&
                PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) == 1 &&
                public_of(key, out_public);
    long size = made ? BIO_get_mem_data(bio, &data) : 0;
    drop_errors();
    kiln_status status = size > 0 ? publish_key(path, data, (size_t)size, diag)
                                  : kiln_diag_set(diag, KILN_E_INTERNAL, NULL, "making a key",
                                                  "OpenSSL could not make a key");
    if (size > 0) {
        OPENSSL_cleanse(data, (size_t)size);
    }
    BIO_free(bio);
    EVP_PKEY_free(key);
    return status;
}

kiln_status kn_sign_public(const char *path, kn_public_key *out_public, kiln_diag *diag)
{
    EVP_PKEY *key = NULL;
    memset(out_public, 0, sizeof *out_public);
    kiln_status status = load_private(path, &key, out_public, diag);
    EVP_PKEY_free(key);
    return status;
}

/* --- public keys ------------------------------------------------------------------------------ */

static kiln_status load_trusted(kn_signer *signer, const char *path, kiln_diag *diag)
{
    void *data = NULL;
    size_t size = 0, line = 0;
    kn_file_facts facts;
    kiln_status status = kn_file_read(path, KN_TRUSTED_FILE, false, &data, &size, &facts, diag);
    if (status != KILN_OK) {
        return kiln_diag_set(diag, status == KILN_E_NOMEM ? status : KILN_E_INVALID,
                             "kiln key show prints such a line", path,
                             "the list of trusted keys cannot be read");
    }
    if (facts.mode & 022u) {
        free(data);
        return kiln_diag_set(diag, KILN_E_INVALID, "run chmod go-w on it", path,
                             "others may write to this list of trusted keys");
    }
    bool good = kn_trusted_parse(kn_span_of(data, size), signer->trusted, KN_TRUSTED_MAX,
                                 &signer->count, &line);
    free(data);
    return good ? KILN_OK
                : kiln_diag_set(diag, KILN_E_INVALID, "kiln key show prints such a line", path,
                                "line %zu is not a public key", line);
}

/* --- the signer ------------------------------------------------------------------------------- */

kiln_status kn_signer_create(const char *key_file, const char *trusted_file, kn_signer **out_signer,
                             kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    *out_signer = NULL;
    kn_signer *signer = calloc(1, sizeof *signer);
    if (signer == NULL) {
        return kn_no_memory(diag, "loading keys");
    }
    if (trusted_file != NULL) {
        status = load_trusted(signer, trusted_file, diag);
    }
    if (status == KILN_OK && key_file != NULL) {
        status = load_private(key_file, &signer->own, &signer->own_public, diag);
        if (status == KILN_OK) {
            signer->trusted[signer->count++] = signer->own_public;
        }
    }
    if (status != KILN_OK) {
        kn_signer_destroy(signer);
        return status;
    }
    *out_signer = signer;
    return KILN_OK;
}

void kn_signer_destroy(kn_signer *signer)
{
    if (signer != NULL) {
        EVP_PKEY_free(signer->own);
        free(signer);
    }
}

bool kn_signer_signs(const kn_signer *signer)
{
    return signer->own != NULL;
}

bool kn_signer_trusts_any(const kn_signer *signer)
{
    return signer->count > 0;
}

kiln_status kn_signer_sign(const kn_signer *signer, const kiln_key *key, kn_span entry,
                           kn_public_key *out_public, unsigned char out_signature[KN_SIGNATURE])
{
    unsigned char message[MESSAGE_SIZE];
    size_t size = KN_SIGNATURE;
    if (signer->own == NULL) {
        return KILN_E_UNSUPPORTED;
    }
    begin_errors();
    EVP_MD_CTX *work = EVP_MD_CTX_new();
    bool good = work != NULL && make_message(key, entry, message) &&
                EVP_DigestSignInit(work, NULL, NULL, NULL, signer->own) == 1 &&
                EVP_DigestSign(work, out_signature, &size, message, sizeof message) == 1 &&
                size == KN_SIGNATURE;
    EVP_MD_CTX_free(work);
    drop_errors();
    *out_public = signer->own_public;
    return good ? KILN_OK : KILN_E_INTERNAL;
}

bool kn_signer_verify(const kn_signer *signer, const kiln_key *key, kn_span entry,
                      const kn_public_key *public_key, const unsigned char signature[KN_SIGNATURE])
{
    unsigned char message[MESSAGE_SIZE];
    bool trusted = false;
    for (size_t i = 0; !trusted && i < signer->count; i++) {
        trusted = memcmp(&signer->trusted[i], public_key, sizeof *public_key) == 0;
    }
    if (!trusted || !make_message(key, entry, message)) {
        return false;
    }
    begin_errors();
    EVP_PKEY *theirs =
        EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, public_key->bytes, KN_PUBLIC_KEY);
    EVP_MD_CTX *work = EVP_MD_CTX_new();
    bool good = theirs != NULL && work != NULL &&
                EVP_DigestVerifyInit(work, NULL, NULL, NULL, theirs) == 1 &&
                EVP_DigestVerify(work, signature, KN_SIGNATURE, message, sizeof message) == 1;
    EVP_MD_CTX_free(work);
    EVP_PKEY_free(theirs);
    drop_errors();
    return good;
}
