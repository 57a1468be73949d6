/* Any bytes as a pack: refused, or walked and looked into in bounds. With an odd first byte the
 * checksums of trailer and records are made right, so that what is behind them is reached too. */
#include "base/checked.h"
#include "fuzz/fuzz.h"
#include "store/pack/pack.h"

static void sum(char *bytes, size_t from, size_t to, size_t at)
{
    const kn_span covered = kn_span_of(bytes + from, to - from);
    kn_checksum(&covered, 1, (unsigned char *)bytes + at);
}

static void make_right(char *bytes, size_t size)
{
    if (size < KN_PACK_HEAD + KN_PACK_TRAILER) {
        return;
    }
    const size_t trailer = size - KN_PACK_TRAILER;
    const uint64_t index = kn_get_u64(bytes + trailer + 1032);
    const uint64_t count = kn_get_u64(bytes + trailer + 1024);
    unsigned char head[KN_PACK_HEAD];
    kn_pack_head_write(head);
    memcpy(bytes, head, sizeof head);
    kn_put_u64(bytes + trailer + 1096, size);
    sum(bytes, trailer, trailer + 1136, trailer + 1136);
    for (uint64_t i = 0; count < 64 && index < trailer && i < count; i++) {
        const uint64_t place = index + count * KN_PACK_KEY + i * KN_PACK_PLACE;
        if (place + KN_PACK_PLACE > trailer) {
            break;
        }
        const uint64_t at = kn_get_u64(bytes + place), length = kn_get_u64(bytes + place + 8);
        if (at < trailer && length >= KN_PACK_RECORD && length <= trailer - at) {
            sum(bytes, at + 16, at + length, at);
        }
    }
}

static kiln_status look(void *user, const kiln_entry_info *info)
{
    size_t *total = user;
    *total += strlen(info->recipe) + strlen(info->target) + strlen(info->kiln_version);
    return info->payload_size > (1u << 20) ? KILN_E_INVALID : KILN_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kiln_pack *pack = NULL;
    kiln_verify_result result = {.struct_size = sizeof(result)};
    kiln_key key = {{0}};
    kiln_blob *blob = NULL;
    size_t total = 0;
    if (size == 0) {
        return 0;
    }
    char *bytes = malloc(size);
    if (bytes == NULL) {
        return 0;
    }
    memcpy(bytes, data + 1, size - 1);
    if (data[0] & 1) {
        make_right(bytes, size - 1);
    }
    if (kn_pack_of(kn_span_of(bytes, size - 1), &pack, NULL) == KILN_OK) {
        /* Any answer will do. */
        kn_ignore(kiln_pack_verify(pack, &result, NULL));
        kn_ignore(kiln_pack_walk(pack, NULL, look, &total, NULL));
        key.bytes[0] = data[0];
        kn_ignore(kiln_pack_get(pack, &key, &blob, NULL));
        kiln_blob_release(blob);
    }
    kn_pack_release(pack);
    free(bytes);
    return 0;
}
