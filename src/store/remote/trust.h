/* What may come in from a remote, and what goes out: the bytes of an entry file with, after them,
 * who vouches for it. Everything that arrives is decided on here and nowhere else. */
#ifndef KILN_STORE_TRUST_H
#define KILN_STORE_TRUST_H

#include "kiln/cache.h"

#include "store/format/tier.h"
#include "store/remote/sign.h"

#define KN_SEAL_SIZE 128u

typedef enum kn_trust_policy {
    KN_TRUST_SIGNED, /* a trusted signature, or nothing */
    KN_TRUST_LOCAL,  /* nothing that comes from elsewhere */
    KN_TRUST_ANY,    /* also without a signature; but no native code for the processor */
} kn_trust_policy;

typedef struct kn_trust {
    kn_trust_policy policy;
    kn_signer *signer;
} kn_trust;

/* From KILN_TRUST, KILN_SIGNING_KEY and KILN_TRUSTED_KEYS. Without KILN_TRUST: signed where there
 * is a key of either kind, else any. KILN_E_INVALID names the variable. */
kiln_status kn_trust_open(kn_trust *out_trust, kiln_diag *diag);
void kn_trust_close(kn_trust *trust);
/* Whether anything from elsewhere could be believed: if not, nothing is asked for. */
static inline bool kn_trust_takes(const kn_trust *trust)
{
    return trust->policy != KN_TRUST_LOCAL;
}

/* What is taken from a remote, and what is refused and why, for people. Static. */
const char *kn_trust_describe(const kn_trust *trust, bool native_too);

/* The bytes to upload, malloc'ed: the entry, as a packet where that pays (packet.h), and its seal
 * where there is a key to sign with. */
kiln_status kn_trust_seal(const kn_trust *trust, const kn_tier_put *what, void **out_data,
                          size_t *out_size, kiln_diag *diag);

/* What there is to unpack with. `find` has dictionaries: a reference, or NULL (`find` itself may be
 * NULL).
 * `limit` is what comes out, at most (0: KN_PACKET_UNPACKED), and is looked at before any room is
 * made; `until` is when it must be done (kn_unzip). */
typedef struct kn_unpacking {
    kiln_blob *(*find)(void *user, const kiln_key *key);
    void *user;
    uint64_t limit, until;
} kn_unpacking;

/* The entry in bytes that came from a remote. `data` is malloc'ed and taken over in every case.
 * KILN_E_REJECTED: refused by the policy (no signature, a stranger's, one that does not fit, native
 * code); KILN_E_CORRUPT: no entry for this key at all, or one whose dictionary is nowhere;
 * KILN_E_INVALID: larger than the limit; KILN_E_TIMEOUT. */
kiln_status kn_trust_unseal(const kn_trust *trust, bool native_too, const kn_unpacking *means,
                            const kiln_key *key, void *data, size_t size, kiln_blob **out_blob,
                            kiln_diag *diag);

#endif
