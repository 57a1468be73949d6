/* A pack's signature is that of an entry whose key is the SHA-256 of the pack and whose bytes are a
 * text that no entry file begins with: the signature of one cannot be taken for one of the other.
 */
#include "kiln/unstable/remote.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "key/digest.h"
#include "store/remote/trust.h"

static const char text_head[] = "kiln-pack-signature 1\nkiln-ed25519 ";
static const char stand_in[] = "kiln-pack 1\n";

_Static_assert(sizeof(kiln_key) == KN_DIGEST_SIZE, "a pack's digest takes the place of a key");

static kn_span stand_in_span(void)
{
    return kn_span_of(stand_in, sizeof stand_in - 1);
}

static kiln_status digest_pack(const void *data, size_t size, kiln_key *out_key, kiln_diag *diag)
{
    return kn_digest_of(data, size, out_key->bytes)
               ? KILN_OK
               : kiln_diag_set(diag, KILN_E_NOMEM, NULL, "a pack's signature", "out of memory");
}

kiln_status kiln_pack_sign(const void *data, size_t size, char out_text[KILN_PACK_SIGNATURE_SIZE],
                           kiln_diag *diag)
{
    kn_trust trust;
    kiln_key key;
    kn_public_key public_key;
    unsigned char signature[KN_SIGNATURE];
    out_text[0] = '\0';
    kiln_status status = kn_trust_open(&trust, diag);
    if (status != KILN_OK) {
        return status;
    }
    if (!kn_signer_signs(trust.signer)) {
        kn_trust_close(&trust);
        return KILN_MISS;
    }
    status = digest_pack(data, size, &key, diag);
    if (status == KILN_OK) {
        status = kn_signer_sign(trust.signer, &key, stand_in_span(), &public_key, signature);
        if (status != KILN_OK) {
            status =
                kiln_diag_set(diag, status, NULL, "a pack's signature", "it could not be made");
        }
    }
    if (status == KILN_OK) {
        char public_text[2 * KN_PUBLIC_KEY + 1], signature_text[2 * KN_SIGNATURE + 1];
        kn_hex_encode(public_key.bytes, sizeof public_key.bytes, public_text);
        kn_hex_encode(signature, sizeof signature, signature_text);
        (void)snprintf(out_text, KILN_PACK_SIGNATURE_SIZE, "%s%s\n%s\n", text_head, public_text,
                       signature_text);
    }
    kn_trust_close(&trust);
    return status;
}

/* False unless it is a whole signature. */
static bool parse_signature(const char *text, size_t size, kn_public_key *out_public,
                            unsigned char out_signature[KN_SIGNATURE])
{
    const size_t head = sizeof text_head - 1;
    char public_text[2 * KN_PUBLIC_KEY + 1] = "", signature_text[2 * KN_SIGNATURE + 1] = "";
    const size_t middle = head + sizeof public_text - 1;
    if (size != middle + sizeof signature_text + 1 || memcmp(text, text_head, head) != 0 ||
        text[middle] != '\n' || text[size - 1] != '\n') {
        return false;
    }
    memcpy(public_text, text + head, sizeof public_text - 1);
    memcpy(signature_text, text + middle + 1, sizeof signature_text - 1);
    return kn_hex_decode(public_text, out_public->bytes, KN_PUBLIC_KEY) &&
           kn_hex_decode(signature_text, out_signature, KN_SIGNATURE);
}

static kiln_status judge_signature(const kn_trust *trust, const char *what, const kiln_key *key,
                                   const char *text, size_t size, kiln_diag *diag)
{
    kn_public_key public_key;
    unsigned char signature[KN_SIGNATURE];
    if (!kn_trust_takes(trust)) {
        return kiln_diag_set(diag, KILN_E_REJECTED, "set it to signed", what,
                             "is refused: KILN_TRUST=local takes nothing from elsewhere");
    }
    if (trust->policy == KN_TRUST_ANY && !kn_signer_trusts_any(trust->signer)) {
        return KILN_MISS;
    }
    if (size == 0) {
        return kiln_diag_set(diag, KILN_E_REJECTED, "push it with KILN_SIGNING_KEY set", what,
                             "is refused: nobody signed it");
    }
    if (!parse_signature(text, size, &public_key, signature) ||
        !kn_signer_verify(trust->signer, key, stand_in_span(), &public_key, signature)) {
        return kiln_diag_set(diag, KILN_E_REJECTED, "check $KILN_TRUSTED_KEYS", what,
                             "is refused: its signature does not match it, or is not of a trusted "
                             "key");
    }
    return KILN_OK;
}

kiln_status kiln_pack_judge(const char *what, const void *data, size_t size, const char *text,
                            size_t text_size, kiln_diag *diag)
{
    kn_trust trust;
    kiln_key key;
    kiln_status status = kn_trust_open(&trust, diag);
    if (status != KILN_OK) {
        return status;
    }
    status = digest_pack(data, size, &key, diag);
    if (status == KILN_OK) {
        status = judge_signature(&trust, what, &key, text, text_size, diag);
    }
    kn_trust_close(&trust);
    return status;
}
