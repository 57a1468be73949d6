/* Any bytes as what a remote gave, under the policy that takes most; and as a list of public keys.
 * With an odd first byte the checksum is made right, so that what is behind it is reached too. */
#include "fuzz/fuzz.h"
#include "store/format/checksum.h"
#include "store/format/entry.h"
#include "store/remote/trust.h"

static void make_right(char *bytes, size_t size)
{
    static const unsigned char magic[8] = {0x89, 'K', 'L', 'N', '\r', '\n', 0x1a, '\n'};
    if (size >= KN_ENTRY_HEADER) {
        kn_span covered = kn_span_of(bytes + 24, size - 24);
        memcpy(bytes, magic, sizeof magic);
        kn_checksum(&covered, 1, (unsigned char *)bytes + 8);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kn_public_key keys[4];
    kn_trust trust = {.policy = KN_TRUST_ANY};
    const kn_unpacking nowhere = {0};
    kiln_key key;
    kiln_blob *blob = NULL;
    size_t count = 0, line = 0;
    memset(&key, 0, sizeof key);
    if (size == 0 || kn_signer_create(NULL, NULL, &trust.signer, NULL) != KILN_OK) {
        return 0;
    }
    (void)kn_trusted_parse(kn_span_of(data + 1, size - 1), keys, 4, &count, &line);
    char *bytes = malloc(size);
    if (bytes != NULL) {
        memcpy(bytes, data + 1, size - 1);
        if (data[0] & 1) {
            make_right(bytes, size - 1);
        }
        if (size - 1 >= KN_ENTRY_HEADER) {
            memcpy(key.bytes, bytes + 32, sizeof key.bytes);
        }
        (void)kn_trust_unseal(&trust, true, &nowhere, &key, bytes, size - 1, &blob, NULL);
        kiln_blob_release(blob);
    }
    kn_trust_close(&trust);
    return 0;
}
