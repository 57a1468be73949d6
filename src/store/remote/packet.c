/* Packs and unpacks packets. */
#include "store/remote/packet.h"

#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#include "base/checked.h"
#include "base/diag.h"
#include "store/format/unzip.h"

static const unsigned char magic[8] = {0x89, 'K', 'W', 'R', '\r', '\n', 0x1a, '\n'};

enum { AT_VERSION = 8, AT_ZERO = 12, AT_UNPACKED = 16, AT_DICTIONARY = 24, AT_REST = 56 };
#define PACKET_VERSION 1u
#define SMALL ((size_t)1 << 20) /* worth more of the processor's time */

static kiln_status corrupt_packet(kiln_diag *diag, const char *why)
{
    return kiln_diag_set(diag, KILN_E_CORRUPT, NULL, "reading a packet", "%s", why);
}

bool kn_packet_is(kn_span bytes)
{
    return bytes.length >= KN_PACKET_HEADER && memcmp(bytes.data, magic, sizeof magic) == 0;
}

kiln_status kn_packet_parse(kn_span bytes, kn_packet *out_packet, kiln_diag *diag)
{
    static const char zeros[KN_PACKET_HEADER - AT_REST] = {0};
    kn_packet packet = {.has_dictionary = false};
    memset(out_packet, 0, sizeof *out_packet);
    if (!kn_packet_is(bytes)) {
        return corrupt_packet(diag, "it does not start with the magic of a packet");
    }
    const char *header = bytes.data;
    const uint64_t unpacked = kn_get_u64(header + AT_UNPACKED);
    if (kn_get_u32(header + AT_VERSION) != PACKET_VERSION || kn_get_u32(header + AT_ZERO) != 0 ||
        memcmp(header + AT_REST, zeros, sizeof zeros) != 0) {
        return corrupt_packet(diag, "it is of a version that this kiln does not know");
    }
    packet.frame = kn_span_of(header + KN_PACKET_HEADER, bytes.length - KN_PACKET_HEADER);
    /* Both say how much it is, so that no room is made for a lie of one. */
    if (unpacked == 0 || unpacked > KN_PACKET_UNPACKED ||
        ZSTD_getFrameContentSize(packet.frame.data, packet.frame.length) != unpacked) {
        return corrupt_packet(diag, "its size does not fit");
    }
    packet.unpacked = (size_t)unpacked;
    memcpy(packet.dictionary.bytes, header + AT_DICTIONARY, sizeof packet.dictionary.bytes);
    for (size_t i = 0; i < sizeof packet.dictionary.bytes; i++) {
        packet.has_dictionary = packet.has_dictionary || packet.dictionary.bytes[i] != 0;
    }
    *out_packet = packet;
    return KILN_OK;
}

kiln_status kn_packet_unpack(const kn_packet *packet, kn_span dictionary, uint64_t until,
                             void **out_data, size_t *out_size, kiln_diag *diag)
{
    *out_data = NULL;
    *out_size = 0;
    char *data = malloc(packet->unpacked);
    if (data == NULL) {
        return kn_no_memory(diag, "unpacking a packet");
    }
    const kiln_status status = kn_unzip(packet->frame, dictionary, until, data, packet->unpacked);
    if (status != KILN_OK) {
        free(data);
        return status == KILN_E_CORRUPT
                   ? corrupt_packet(diag, "it does not unpack to the size it names")
               : status == KILN_E_TIMEOUT
                   ? kiln_diag_set(diag, status, NULL, "unpacking a packet",
                                   "it takes longer to unpack than a lookup may take")
                   : kiln_diag_set(diag, status, NULL, "unpacking a packet", NULL);
    }
    *out_data = data;
    *out_size = packet->unpacked;
    return KILN_OK;
}

void *kn_packet_make(kn_span entry, size_t spare, size_t *out_size)
{
    const int level = entry.length <= SMALL ? 9 : 3;
    const size_t bound = ZSTD_compressBound(entry.length);
    *out_size = 0;
    if (ZSTD_isError(bound) || entry.length > KN_PACKET_UNPACKED) {
        return NULL;
    }
    char *data = malloc(KN_PACKET_HEADER + bound + spare);
    if (data == NULL) {
        return NULL;
    }
    const size_t got =
        ZSTD_compress(data + KN_PACKET_HEADER, bound, entry.data, entry.length, level);
    if (ZSTD_isError(got) || got + KN_PACKET_HEADER > entry.length - entry.length / 16) {
        free(data);
        return NULL;
    }
    unsigned char *header = (unsigned char *)data;
    memset(header, 0, KN_PACKET_HEADER);
    memcpy(header, magic, sizeof magic);
    kn_put_u32(header + AT_VERSION, PACKET_VERSION);
    kn_put_u64(header + AT_UNPACKED, entry.length);
    *out_size = KN_PACKET_HEADER + got;
    return data;
}
