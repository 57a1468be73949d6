/* Ed25519 signatures over what remotes give and take: who may have made an entry. security.md
 * says what they protect, docs/reference/formats.md the bytes.
 *
 * What is signed is the entry's key and the SHA-256 of the entry file, under a header that nothing
 * else is signed with: a signature cannot be moved to another key, nor to other bytes.
 *
 * The functions are in sign.c, which opens the module libkiln-sign.so (Windows: .dll) where there
 * is a key. */
#ifndef KILN_STORE_SIGN_H
#define KILN_STORE_SIGN_H

#include "kiln/cache.h"

#include "base/span.h"
#include "store/remote/sign_module.h"

#define KN_TRUSTED_MAX 256
#define KN_TRUSTED_FILE ((size_t)64 << 10)

typedef struct kn_public_key {
    unsigned char bytes[KN_PUBLIC_KEY];
} kn_public_key;

/* Whose signatures count, and what to sign with. */
typedef struct kn_signer kn_signer;

/* `key_file`: a private key in PEM (kiln key generate, openssl genpkey -algorithm ed25519), refused
 * where others may read it; `trusted_file`: the public keys, one a line (kn_trusted_parse). Either
 * may be NULL. The signing key's own signatures are trusted. KILN_E_INVALID names the file,
 * KILN_E_UNAVAILABLE the module. */
kiln_status kn_signer_create(const char *key_file, const char *trusted_file, kn_signer **out_signer,
                             kiln_diag *diag);
void kn_signer_destroy(kn_signer *signer);
bool kn_signer_signs(const kn_signer *signer);
bool kn_signer_trusts_any(const kn_signer *signer);

/* KILN_E_UNSUPPORTED without a signing key; KILN_E_INTERNAL. */
kiln_status kn_signer_sign(const kn_signer *signer, const kiln_key *key, kn_span entry,
                           kn_public_key *out_public, unsigned char out_signature[KN_SIGNATURE]);
/* True when `public_key` is trusted and the signature is its own for this key and entry. */
bool kn_signer_verify(const kn_signer *signer, const kiln_key *key, kn_span entry,
                      const kn_public_key *public_key, const unsigned char signature[KN_SIGNATURE]);

/* In trusted.c. Lines `kiln-ed25519 <64 hexadecimal digits> [comment]`, empty ones, and comments
 * after '#'. False, and the number of the line, where one is neither, or there are too many. */
bool kn_trusted_parse(kn_span text, kn_public_key *keys, size_t room, size_t *out_count,
                      size_t *out_line);

/* Writes a new private key, 0600, where there is no file yet. */
kiln_status kn_sign_generate(const char *path, kn_public_key *out_public, kiln_diag *diag);
/* The public half of a private key file. */
kiln_status kn_sign_public(const char *path, kn_public_key *out_public, kiln_diag *diag);

#endif
