/* A packet: an entry as it travels to and from a remote, whole in one zstd frame. formats.md has it
 * byte by byte. On disk entries lie as they are; a packet never gets there.
 *
 * Earlier versions packed with a dictionary, which the packet names by the key of its entry. */
#ifndef KILN_STORE_PACKET_H
#define KILN_STORE_PACKET_H

#include "kiln/cache.h"

#include "base/span.h"

#define KN_PACKET_HEADER 64u
/* Larger claims are damage. */
#define KN_PACKET_UNPACKED ((uint64_t)512 << 20)

typedef struct kn_packet {
    bool has_dictionary;
    kiln_key dictionary;
    size_t unpacked;
    kn_span frame;
} kn_packet;

/* By its first bytes. */
bool kn_packet_is(kn_span bytes);
/* KILN_E_CORRUPT. */
kiln_status kn_packet_parse(kn_span bytes, kn_packet *out_packet, kiln_diag *diag);
/* malloc'ed; `dictionary` must be the one it names, empty if none; `until` as for kn_unzip.
 * KILN_E_CORRUPT, KILN_E_NOMEM, KILN_E_TIMEOUT. */
kiln_status kn_packet_unpack(const kn_packet *packet, kn_span dictionary, uint64_t until,
                             void **out_data, size_t *out_size, kiln_diag *diag);

/* A packet of an entry's bytes, malloc'ed with `spare` bytes of room after it; NULL where it does
 * not pay (it saves less than a sixteenth), or memory ran out. */
void *kn_packet_make(kn_span entry, size_t spare, size_t *out_size);

#endif
