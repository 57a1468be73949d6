/* Decides what is believed. This file must not know how bytes travel. */
#include "store/remote/trust.h"

#include <stdlib.h>
#include <string.h>

#include "kiln/sys/backend.h"

#include "base/checked.h"
#include "base/stages.h"
#include "key/recipe.h"
#include "store/format/blob.h"
#include "store/format/entry.h"
#include "store/remote/packet.h"
#include "sys/clock.h"
#include "sys/env.h"

static const unsigned char magic[8] = {0x89, 'K', 'S', 'G', '\r', '\n', 0x1a, '\n'};

enum { AT_VERSION = 8, AT_PUBLIC = 16, AT_SIGNATURE = 48, AT_ZERO = 112 };
#define SEAL_VERSION 1u

kiln_status kn_trust_open(kn_trust *out_trust, kiln_diag *diag)
{
    const char *policy = kn_env_get("KILN_TRUST");
    const char *own = kn_env_get("KILN_SIGNING_KEY"), *others = kn_env_get("KILN_TRUSTED_KEYS");
    memset(out_trust, 0, sizeof *out_trust);
    own = own != NULL && own[0] != '\0' ? own : NULL;
    others = others != NULL && others[0] != '\0' ? others : NULL;
    out_trust->policy = own != NULL || others != NULL ? KN_TRUST_SIGNED : KN_TRUST_ANY;
    if (policy != NULL && strcmp(policy, "signed") == 0) {
        out_trust->policy = KN_TRUST_SIGNED;
    } else if (policy != NULL && strcmp(policy, "local") == 0) {
        out_trust->policy = KN_TRUST_LOCAL;
    } else if (policy != NULL && strcmp(policy, "any") == 0) {
        out_trust->policy = KN_TRUST_ANY;
    } else if (policy != NULL && policy[0] != '\0') {
        char what[128];
        kn_env_describe("KILN_TRUST", what, sizeof what);
        return kiln_diag_set(diag, KILN_E_INVALID, "set it to signed, local or any", what,
                             "\"%.40s\" is not a trust policy", policy);
    }
    return kn_signer_create(own, others, &out_trust->signer, diag);
}

void kn_trust_close(kn_trust *trust)
{
    kn_signer_destroy(trust->signer);
    trust->signer = NULL;
}

const char *kn_trust_describe(const kn_trust *trust, bool native_too)
{
    if (trust->policy == KN_TRUST_LOCAL) {
        return "nothing: KILN_TRUST=local";
    }
    if (trust->policy == KN_TRUST_SIGNED) {
        return kn_signer_trusts_any(trust->signer)
                   ? "what a trusted key signed; all else is refused"
                   : "nothing: signed entries alone are taken, and KILN_TRUSTED_KEYS has no key";
    }
    return native_too ? "everything, native code without a signature included"
                      : "code for GPUs, signed or not; native code without a trusted signature is "
                        "refused (sign it, or add unsigned-native to the URL)";
}

/* --- out -------------------------------------------------------------------------------------- */

static void put_seal(unsigned char *seal, const kn_public_key *public_key,
                     const unsigned char *signature)
{
    memset(seal, 0, KN_SEAL_SIZE);
    memcpy(seal, magic, sizeof magic);
    kn_put_u32(seal + AT_VERSION, SEAL_VERSION);
    memcpy(seal + AT_PUBLIC, public_key, sizeof *public_key);
    memcpy(seal + AT_SIGNATURE, signature, KN_SIGNATURE);
}

kiln_status kn_trust_seal(const kn_trust *trust, const kn_tier_put *what, void **out_data,
                          size_t *out_size, kiln_diag *diag)
{
    const kn_entry_request request = {.key = what->key,
                                      .recipe = what->recipe,
                                      .blob = what->blob,
                                      .created_ns = kn_clock_wall()};
    void *data = NULL;
    size_t size = 0, packed_size = 0;
    *out_data = NULL;
    *out_size = 0;
    /* Room for the seal: what is sealed is not copied again. */
    kiln_status status = kn_entry_bytes(&request, KN_SEAL_SIZE, &data, &size, diag);
    if (status != KILN_OK) {
        return status;
    }
    void *packed = kn_packet_make(kn_span_of(data, size), KN_SEAL_SIZE, &packed_size);
    if (packed != NULL) {
        free(data);
        data = packed;
        size = packed_size;
    }
    if (kn_signer_signs(trust->signer)) {
        kn_public_key public_key;
        unsigned char signature[KN_SIGNATURE];
        status = kn_signer_sign(trust->signer, what->key, kn_span_of(data, size), &public_key,
                                signature);
        if (status != KILN_OK) {
            free(data);
            return kiln_diag_set(diag, status, NULL, "sealing an entry", "it could not be signed");
        }
        put_seal((unsigned char *)data + size, &public_key, signature);
        size += KN_SEAL_SIZE;
    }
    *out_data = data;
    *out_size = size;
    return KILN_OK;
}

/* --- in --------------------------------------------------------------------------------------- */

static kiln_status refuse_entry(kiln_diag *diag, const char *why)
{
    return kiln_diag_set(diag, KILN_E_REJECTED, NULL, "an entry from a remote", "%s", why);
}

/* The seal at the end, or NULL. An entry says its own length, so that nothing can be both. */
static const char *find_seal(kn_span bytes)
{
    if (bytes.length < KN_ENTRY_HEADER + KN_SEAL_SIZE) {
        return NULL;
    }
    const char *seal = bytes.data + bytes.length - KN_SEAL_SIZE;
    return memcmp(seal, magic, sizeof magic) == 0 ? seal : NULL;
}

static bool is_sealed(const kn_trust *trust, const kiln_key *key, kn_span entry, const char *seal)
{
    static const char zeros[KN_SEAL_SIZE - AT_ZERO] = {0};
    kn_public_key public_key;
    memcpy(&public_key, seal + AT_PUBLIC, sizeof public_key);
    return kn_get_u32(seal + AT_VERSION) == SEAL_VERSION &&
           kn_get_u32(seal + AT_VERSION + 4) == 0 &&
           memcmp(seal + AT_ZERO, zeros, sizeof zeros) == 0 &&
           kn_signer_verify(trust->signer, key, entry, &public_key,
                            (const unsigned char *)seal + AT_SIGNATURE);
}

/* `text` as a recipe has it, in quotes. */
static bool is_quoted(kn_span value, const char *text)
{
    const size_t length = strlen(text);
    return value.length == length + 2 && memcmp(value.data + 1, text, length) == 0;
}

/* What a stage says of its entries. A stage that is not in the table is a program's own. */
static bool is_native_stage(kn_span stage)
{
    static const char cpu[] = "cpu.";
    const kn_stage_row *row = kn_stage_find(stage);
    return row != NULL
               ? row->code == KN_STAGE_DRIVER || row->code == KN_STAGE_HOST
               : stage.length >= sizeof cpu - 1 && memcmp(stage.data, cpu, sizeof cpu - 1) == 0;
}

/* Code that runs in this process as soon as it is loaded, or that a driver loads which was not
 * written to read what strangers made; and, whatever the stage, what is for a device that the
 * recipe does not call a GPU. */
static bool is_native(kn_span recipe)
{
    kn_recipe_field field;
    bool has_stage = false;
    while (kn_recipe_next(&recipe, &field)) {
        if (kn_span_equal(field.name, kn_span_of_text(KILN_IDENTITY_CODE))) {
            if (!is_quoted(field.value, KILN_IDENTITY_GPU)) {
                return true;
            }
        } else if (!has_stage && kn_span_equal(field.name, kn_span_of_text("stage"))) {
            has_stage = true;
            if (field.value.length <= 2 ||
                is_native_stage(kn_span_of(field.value.data + 1, field.value.length - 2))) {
                return true;
            }
        }
    }
    return !has_stage; /* a recipe without a stage: who knows */
}

/* What the policy says before the entry is looked into. */
static kiln_status judge_seal(const kn_trust *trust, bool has_seal, bool sealed, kiln_diag *diag)
{
    if (trust->policy == KN_TRUST_LOCAL) {
        return refuse_entry(diag, "KILN_TRUST=local refuses all entries of remotes");
    }
    if (trust->policy == KN_TRUST_SIGNED && !has_seal) {
        return refuse_entry(diag, "it is not signed");
    }
    if (!sealed &&
        (trust->policy == KN_TRUST_SIGNED || (has_seal && kn_signer_trusts_any(trust->signer)))) {
        return refuse_entry(diag, "its signature is not by a trusted key, or does not match");
    }
    return KILN_OK;
}

/* A header and padding besides what counts for who gives an entry. */
#define SLACK UINT64_C(4096)

static uint64_t limit_of(const kn_unpacking *means)
{
    return means->limit != 0 && means->limit < KN_PACKET_UNPACKED - SLACK ? means->limit + SLACK
                                                                          : KN_PACKET_UNPACKED;
}

static kiln_status refuse_size(kiln_diag *diag, uint64_t size, uint64_t limit)
{
    return kiln_diag_set(diag, KILN_E_INVALID, "raise `max-bytes` in the remote's URL",
                         "an entry from a remote",
                         "it has %llu bytes unpacked, and %llu are allowed",
                         (unsigned long long)size, (unsigned long long)limit);
}

/* What a packet holds takes the place of the packet. */
static kiln_status unpack_packet(const kn_unpacking *means, kn_span file, void **data,
                                 kn_span *out_file, kiln_diag *diag)
{
    kn_packet packet;
    kiln_blob *dictionary = NULL;
    void *unpacked = NULL;
    size_t size = 0;
    kn_span with = {NULL, 0};
    kiln_status status = kn_packet_parse(file, &packet, diag);
    if (status != KILN_OK) {
        return status;
    }
    if (packet.unpacked > limit_of(means)) {
        return refuse_size(diag, packet.unpacked, limit_of(means));
    }
    if (packet.has_dictionary) {
        dictionary = means->find != NULL ? means->find(means->user, &packet.dictionary) : NULL;
        if (dictionary == NULL) {
            return kiln_diag_set(diag, KILN_E_CORRUPT, NULL, "an entry from a remote",
                                 "it is compressed with a missing dictionary");
        }
        with = kn_span_of(kiln_blob_data(dictionary), kiln_blob_size(dictionary));
    }
    status = kn_packet_unpack(&packet, with, means->until, &unpacked, &size, diag);
    kiln_blob_release(dictionary);
    if (status != KILN_OK) {
        return status;
    }
    free(*data);
    *data = unpacked;
    *out_file = kn_span_of(unpacked, size);
    return KILN_OK;
}

/* Where KILN_TRUSTED_KEYS has no key, a signature says nothing: it counts as none. */
static kiln_status refuse_native(bool has_seal, kiln_diag *diag)
{
    return kiln_diag_set(diag, KILN_E_REJECTED,
                         has_seal ? "set KILN_TRUSTED_KEYS to a file with the public key of who "
                                    "signed it, or add unsigned-native to the remote's URL"
                                  : "sign what is uploaded (`kiln key generate`, then "
                                    "KILN_SIGNING_KEY there and KILN_TRUSTED_KEYS here), or add "
                                    "unsigned-native to the remote's URL",
                         "an entry from a remote",
                         has_seal ? "it is native code, and no key is trusted here"
                                  : "it is native code and not signed");
}

static kiln_status judge_entry(const kn_unpacking *means, const kiln_key *key, kn_span file,
                               kn_entry *entry, kiln_diag *diag)
{
    kiln_status status = kn_entry_parse(file, key, entry, diag);
    if (status != KILN_OK) {
        return status;
    }
    if (kn_entry_unpacked(entry) > limit_of(means)) {
        return refuse_size(diag, kn_entry_unpacked(entry), limit_of(means));
    }
    entry->until = means->until;
    if (!kn_recipe_proves(entry->recipe, key)) {
        return kiln_diag_set(diag, KILN_E_CORRUPT, NULL, "an entry from a remote",
                             "its recipe does not match its key");
    }
    return KILN_OK;
}

kiln_status kn_trust_unseal(const kn_trust *trust, bool native_too, const kn_unpacking *means,
                            const kiln_key *key, void *data, size_t size, kiln_blob **out_blob,
                            kiln_diag *diag)
{
    kn_entry entry;
    *out_blob = NULL;
    const kn_span bytes = kn_span_of(data, size);
    const char *seal = find_seal(bytes);
    kn_span file = kn_span_of(data, size - (seal != NULL ? KN_SEAL_SIZE : 0));
    /* The signature first: nothing else looks at bytes that nobody vouches for. */
    const bool has_seal = seal != NULL;
    const bool sealed = has_seal && is_sealed(trust, key, file, seal);
    kiln_status status = judge_seal(trust, has_seal, sealed, diag);
    if (status == KILN_OK && kn_packet_is(file)) {
        status = unpack_packet(means, file, &data, &file, diag);
    }
    if (status == KILN_OK) {
        status = judge_entry(means, key, file, &entry, diag);
    }
    if (status == KILN_OK && !sealed && !native_too && is_native(entry.recipe)) {
        status = refuse_native(has_seal, diag);
    }
    if (status != KILN_OK) {
        free(data);
        return status;
    }
    return kn_entry_load(data, file.length, &entry, out_blob, diag);
}
