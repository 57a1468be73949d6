/* A pack being written; the public half is in kiln/unstable/pack.h.
 *
 * Entries are streamed into a temporary file. The first small ones are held back until there are
 * enough of them to train a dictionary on, and are then written in order of their keys: the bytes
 * of a pack depend on its entries alone. */
#ifndef KILN_STORE_PACK_WRITE_H
#define KILN_STORE_PACK_WRITE_H

#include "kiln/unstable/pack.h"

#include "base/map.h"
#include "store/pack/pack_format.h"
#include "sys/publish.h"

struct ZSTD_CCtx_s;
struct ZSTD_CDict_s;

#define KN_PACK_SMALL ((size_t)64 << 10) /* larger ones gain nothing from a dictionary */
#define KN_PACK_HELD ((size_t)4 << 20)   /* bytes held back at most */

typedef struct kn_pack_spot {
    kiln_key key;
    uint64_t offset, length;
} kn_pack_spot;

/* An entry that waits for the dictionary; `body` is malloc'ed. */
typedef struct kn_pack_held {
    kn_pack_record record;
    char *body;
} kn_pack_held;

struct kiln_pack_writer {
    kn_publish publish;
    bool open;   /* the temporary is there */
    bool broken; /* what was taken could not be written: no pack will come of it */
    int level;
    bool raw;
    uint64_t at; /* bytes written */
    uint64_t payload_bytes;
    int64_t created_ns;
    kn_map seen;
    kn_pack_spot *spots;
    size_t count, capacity;
    kn_pack_held *held;
    size_t held_count, held_capacity, held_bytes;
    bool trained; /* the dictionary is decided on, even if there is none */
    void *dictionary;
    size_t dictionary_size;
    struct ZSTD_CCtx_s *context;
    struct ZSTD_CDict_s *prepared;
};

/* `body` is laid out as an unpacked record's; the record's body is not looked at. */
kiln_status kn_pack_writer_take(kiln_pack_writer *writer, const kn_pack_record *record,
                                kn_span body, bool *out_added, kiln_diag *diag);

#endif
