/* For systems without Ed25519: takes the place of sign.c there. A request for signatures fails with
 * that reason, and nothing counts as signed. */
#include "store/remote/sign.h"

#include <stdlib.h>
#include <string.h>

#include "base/diag.h"

struct kn_signer {
    char unused;
};

static kiln_status refuse_unsupported(const char *what, kiln_diag *diag)
{
    return kiln_diag_set(diag, KILN_E_UNSUPPORTED, "sign and verify on another system", what,
                         "signing is not supported on Windows");
}

kiln_status kn_signer_create(const char *key_file, const char *trusted_file, kn_signer **out_signer,
                             kiln_diag *diag)
{
    *out_signer = NULL;
    if (key_file != NULL || trusted_file != NULL) {
        return refuse_unsupported(key_file != NULL ? key_file : trusted_file, diag);
    }
    *out_signer = calloc(1, sizeof **out_signer);
    return *out_signer != NULL ? KILN_OK : kn_no_memory(diag, "loading keys");
}

void kn_signer_destroy(kn_signer *signer)
{
    free(signer);
}

bool kn_signer_signs(const kn_signer *signer)
{
    (void)signer;
    return false;
}

bool kn_signer_trusts_any(const kn_signer *signer)
{
    (void)signer;
    return false;
}

kiln_status kn_signer_sign(const kn_signer *signer, const kiln_key *key, kn_span entry,
                           kn_public_key *out_public, unsigned char out_signature[KN_SIGNATURE])
{
    (void)signer;
    (void)key;
    (void)entry;
    memset(out_public, 0, sizeof *out_public);
    memset(out_signature, 0, KN_SIGNATURE);
    return KILN_E_UNSUPPORTED;
}

bool kn_signer_verify(const kn_signer *signer, const kiln_key *key, kn_span entry,
                      const kn_public_key *public_key, const unsigned char signature[KN_SIGNATURE])
{
    (void)signer;
    (void)key;
    (void)entry;
    (void)public_key;
    (void)signature;
    return false;
}

kiln_status kn_sign_generate(const char *path, kn_public_key *out_public, kiln_diag *diag)
{
    memset(out_public, 0, sizeof *out_public);
    return refuse_unsupported(path, diag);
}

kiln_status kn_sign_public(const char *path, kn_public_key *out_public, kiln_diag *diag)
{
    memset(out_public, 0, sizeof *out_public);
    return refuse_unsupported(path, diag);
}
