/* Any bytes as an entry file: refused or a whole blob, in bounds either way. With an odd first byte
 * the magic and the checksum are made right, so that what is behind them is reached too. */
#include "fuzz/fuzz.h"
#include "store/format/checksum.h"
#include "store/format/entry.h"

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
    kn_entry entry;
    kiln_blob *blob = NULL;
    if (size == 0) {
        return 0;
    }
    size_t length = size - 1;
    char *bytes = malloc(length > 0 ? length : 1);
    if (bytes == NULL) {
        return 0;
    }
    memcpy(bytes, data + 1, length);
    if (data[0] & 1) {
        make_right(bytes, length);
    }
    /* An honest claim of a gigabyte is allowed, and no use here. */
    if (kn_entry_parse(kn_span_of(bytes, length), NULL, &entry, NULL) != KILN_OK ||
        entry.payload_size > (1u << 20)) {
        free(bytes);
        return 0;
    }
    if (kn_entry_load(bytes, length, &entry, &blob, NULL) == KILN_OK) {
        volatile unsigned char sum = 0;
        const unsigned char *payload = kiln_blob_data(blob), *facts = kiln_blob_facts(blob);
        for (size_t i = 0; i < kiln_blob_size(blob); i++) {
            sum = (unsigned char)(sum + payload[i]);
        }
        for (size_t i = 0; i < kiln_blob_facts_size(blob); i++) {
            sum = (unsigned char)(sum + facts[i]);
        }
    }
    kiln_blob_release(blob);
    return 0;
}
