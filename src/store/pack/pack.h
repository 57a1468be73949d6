/* A pack being read; the public half is in kiln/unstable/pack.h, the format in pack_format.h.
 *
 * A pack is one read-only mapping with a reference count: raw entries are lent to their blobs where
 * they lie. Finding is a look into the fan-out and a binary search; nothing is read at open but the
 * head and the trailer. */
#ifndef KILN_STORE_PACK_H
#define KILN_STORE_PACK_H

#include "kiln/unstable/pack.h"

#include <stdatomic.h>

#include "store/pack/pack_format.h"
#include "sys/map_file.h"

struct ZSTD_DDict_s;
struct ZSTD_DCtx_s;

struct kiln_pack {
    _Atomic size_t references;
    kn_map_file map;
    char *path;
    kn_pack_trailer trailer;
    kiln_pack_info info; /* what the trailer says, for callers */
    const char *keys, *places;
    _Atomic(struct ZSTD_DDict_s *) dictionary; /* made at its first use */
    _Atomic(struct ZSTD_DCtx_s *) spare;       /* a context that nobody uses now, or NULL */
};

/* A pack of bytes in memory, borrowed, for tests and fuzzers: `bytes` must outlive it and its
 * blobs. */
kiln_status kn_pack_of(kn_span bytes, kiln_pack **out_pack, kiln_diag *diag);
void kn_pack_release(kiln_pack *pack);

/* Key and record of entry `index`, in order of keys. KILN_E_CORRUPT when the index names bytes that
 * are not records. */
kiln_status kn_pack_record_at(const kiln_pack *pack, uint64_t index, kiln_key *out_key,
                              kn_span *out_record, kiln_diag *diag);
/* KILN_MISS if the pack has none. */
kiln_status kn_pack_find(const kiln_pack *pack, const kiln_key *key, kn_span *out_record,
                         kiln_diag *diag);
/* The record and the blob of a key, verified. KILN_MISS. */
kiln_status kn_pack_fetch(kiln_pack *pack, const kiln_key *key, kn_pack_record *out_record,
                          kiln_blob **out_blob, kiln_diag *diag);
/* Unpacks a parsed record. */
kiln_status kn_pack_load(kiln_pack *pack, const kn_pack_record *record, kiln_blob **out_blob,
                         kiln_diag *diag);
/* The dictionary's bytes, verified; empty where there is none. KILN_E_CORRUPT. */
kiln_status kn_pack_dictionary(const kiln_pack *pack, kn_span *out_dictionary, kiln_diag *diag);

#endif
