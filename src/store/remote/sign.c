/* Signs and verifies through the module libkiln-sign. This file must not know what an entry
 * looks like. */
#include "store/remote/sign.h"

#include <stdlib.h>
#include <string.h>

#include "kiln/unstable/probe.h"

#include "base/diag.h"
#include "base/text.h"
#include "key/digest.h"
#include "sys/dylib.h"
#include "sys/file.h"
#include "sys/guarded.h"
#include "sys/paths.h"

#define MODULE_NAME KN_MODULE_FILE("sign")
#define KEY_FILE_LIMIT ((size_t)16 << 10)

static const char context[] = "kiln-entry-signature 1\n";
#define CONTEXT_SIZE (sizeof context - 1)
#define MESSAGE_SIZE (CONTEXT_SIZE + 32 + KN_DIGEST_SIZE)

struct kn_signer {
    const kn_sign_ops *ops; /* NULL: has no key, and trusts nobody */
    void *own;              /* NULL: verifies only */
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

/* --- the module ------------------------------------------------------------------------------- */

static bool has_all_calls(const kn_sign_ops *ops)
{
    return ops != NULL && ops->abi == KN_SIGN_ABI && ops->read != NULL && ops->make != NULL &&
           ops->forget != NULL && ops->sign != NULL && ops->verify != NULL && ops->wipe != NULL;
}

/* It stays mapped: a table that was given out is good for as long as the process. `what` is the
 * file that wants it. */
static kiln_status open_module(const char *what, const kn_sign_ops **out_ops, kiln_diag *diag)
{
    kn_dylib *module = NULL;
    kn_sign_module_fn *get_ops = NULL;
    kiln_probe_outcome outcome;
    *out_ops = NULL;
    char *path = kn_paths_module(MODULE_NAME);
    if (path == NULL) {
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE,
                             "install it, or set KILN_LIBEXEC to its directory", what,
                             MODULE_NAME ", which signs and verifies, is not installed");
    }
    kiln_status status = kn_dylib_open_apart(path, &module, &outcome, diag);
    if (status == KILN_OK) {
        void *symbol = kn_dylib_symbol(module, "kiln_sign_module");
        memcpy(&get_ops, &symbol, sizeof get_ops);
        const kn_sign_ops *ops = get_ops != NULL ? get_ops() : NULL;
        kn_dylib_retire(module);
        if (has_all_calls(ops)) {
            *out_ops = ops;
        } else {
            status = kiln_diag_set(diag, KILN_E_UNAVAILABLE, "install the one of this kiln", path,
                                   "it is a module of another version");
        }
    }
    free(path);
    return status;
}

/* --- key files -------------------------------------------------------------------------------- */

static kiln_status load_private(const char *path, const kn_sign_ops **out_ops, void **out_key,
                                kn_public_key *out_public, kiln_diag *diag)
{
    void *data = NULL;
    size_t size = 0;
    kn_exposure exposure;
    *out_key = NULL;
    kiln_status status = kn_guarded_read(path, KEY_FILE_LIMIT, &data, &size, &exposure, diag);
    if (status != KILN_OK) {
        return kiln_diag_set(diag, status == KILN_E_NOMEM ? status : KILN_E_INVALID,
                             "make one with kiln key generate", path,
                             "the signing key cannot be read");
    }
    if (exposure != KN_EXPOSED_TO_NOBODY) {
        free(data);
        return kiln_diag_set(diag, KILN_E_INVALID, KN_GUARDED_HIDE, path,
                             "others may read or change this signing key");
    }
    status = open_module(path, out_ops, diag);
    if (status == KILN_OK) {
        *out_key = (*out_ops)->read(data, size, out_public->bytes);
        (*out_ops)->wipe(data, size);
    }
    free(data);
    if (status == KILN_OK && *out_key == NULL) {
        status = kiln_diag_set(diag, KILN_E_INVALID, "make one with kiln key generate", path,
                               "it is not an Ed25519 private key in PEM without a password");
    }
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
    const kn_sign_ops *ops = NULL;
    char pem[KN_SIGN_PEM];
    size_t size = 0;
    kiln_status status = open_module(path, &ops, diag);
    if (status != KILN_OK) {
        return status;
    }
    status = ops->make(pem, &size, out_public->bytes)
                 ? kn_guarded_make(path, pem, size, diag)
                 : kiln_diag_set(diag, KILN_E_INTERNAL, NULL, "making a key",
                                 "the key could not be made");
    ops->wipe(pem, sizeof pem);
    return status;
}

kiln_status kn_sign_public(const char *path, kn_public_key *out_public, kiln_diag *diag)
{
    const kn_sign_ops *ops = NULL;
    void *key = NULL;
    memset(out_public, 0, sizeof *out_public);
    kiln_status status = load_private(path, &ops, &key, out_public, diag);
    if (key != NULL) {
        ops->forget(key);
    }
    return status;
}

/* --- public keys ------------------------------------------------------------------------------ */

static kiln_status load_trusted(kn_signer *signer, const char *path, kiln_diag *diag)
{
    void *data = NULL;
    size_t size = 0, line = 0;
    kn_exposure exposure;
    kiln_status status = kn_guarded_read(path, KN_TRUSTED_FILE, &data, &size, &exposure, diag);
    if (status != KILN_OK) {
        return kiln_diag_set(diag, status == KILN_E_NOMEM ? status : KILN_E_INVALID,
                             "kiln key show prints such a line", path,
                             "the list of trusted keys cannot be read");
    }
    if (exposure == KN_EXPOSED_TO_WRITERS) {
        free(data);
        return kiln_diag_set(diag, KILN_E_INVALID, KN_GUARDED_LOCK, path,
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
        status = load_private(key_file, &signer->ops, &signer->own, &signer->own_public, diag);
        if (status == KILN_OK) {
            signer->trusted[signer->count++] = signer->own_public;
        }
    }
    if (status == KILN_OK && signer->count > 0 && signer->ops == NULL) {
        status = open_module(trusted_file, &signer->ops, diag);
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
        if (signer->ops != NULL) {
            signer->ops->forget(signer->own);
        }
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
    if (signer->own == NULL) {
        return KILN_E_UNSUPPORTED;
    }
    *out_public = signer->own_public;
    return make_message(key, entry, message) &&
                   signer->ops->sign(signer->own, message, sizeof message, out_signature)
               ? KILN_OK
               : KILN_E_INTERNAL;
}

bool kn_signer_verify(const kn_signer *signer, const kiln_key *key, kn_span entry,
                      const kn_public_key *public_key, const unsigned char signature[KN_SIGNATURE])
{
    unsigned char message[MESSAGE_SIZE];
    bool trusted = false;
    for (size_t i = 0; !trusted && i < signer->count; i++) {
        trusted = memcmp(&signer->trusted[i], public_key, sizeof *public_key) == 0;
    }
    return trusted && make_message(key, entry, message) &&
           signer->ops->verify(public_key->bytes, message, sizeof message, signature);
}
