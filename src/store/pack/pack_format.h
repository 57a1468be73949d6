/* The pack file, as reader and writer agree on it; docs/reference/formats.md is the specification.
 *
 *     head | record ... | dictionary | keys, places | fan-out, trailer
 *
 * A record is an entry whose body (payload, facts and recipe, laid out as a blob's memory is) is
 * stored raw or as one zstd frame. The trailer is last, so that a file that was cut short shows at
 * once and a writer never goes back. */
#ifndef KILN_STORE_PACK_FORMAT_H
#define KILN_STORE_PACK_FORMAT_H

#include "kiln/cache.h"

#include "base/span.h"
#include "store/format/checksum.h"

#define KN_PACK_VERSION 1u
#define KN_PACK_HEAD 16u
#define KN_PACK_TRAILER 1152u
#define KN_PACK_ALIGN 16u
#define KN_PACK_FANOUT 256
#define KN_PACK_KEY 32u
#define KN_PACK_PLACE 16u /* offset, length */
#define KN_PACK_RECORD 112u

enum {
    KN_PACK_ZSTD = 1u << 0,       /* the body is one zstd frame */
    KN_PACK_DICTIONARY = 1u << 1, /* made with the pack's dictionary */
};

/* The trailer's content. */
typedef struct kn_pack_trailer {
    uint32_t fanout[KN_PACK_FANOUT]; /* keys whose first byte is at most i */
    uint64_t count;
    uint64_t index_at;
    uint64_t dictionary_at, dictionary_size;
    unsigned char dictionary_sum[KN_CHECKSUM_SIZE];
    unsigned char index_sum[KN_CHECKSUM_SIZE];
    int64_t created_ns; /* of the newest entry: a pack depends on what is in it alone */
    uint64_t file_size;
    char writer[17];
} kn_pack_trailer;

void kn_pack_head_write(unsigned char out[KN_PACK_HEAD]);
void kn_pack_trailer_write(const kn_pack_trailer *trailer, unsigned char out[KN_PACK_TRAILER]);
/* Checks head and trailer of a whole file and every offset in them; reads nothing else.
 * KILN_E_CORRUPT with the reason; KILN_E_UNSUPPORTED for another version. */
kiln_status kn_pack_trailer_parse(kn_span file, kn_pack_trailer *out_trailer, kiln_diag *diag);

typedef struct kn_pack_record {
    kiln_key key;
    uint32_t flags;
    uint64_t compile_ns;
    int64_t created_ns;
    char writer[17];
    size_t payload_size, facts_size, recipe_size;
    kn_span body; /* as stored */
} kn_pack_record;

/* Header of a record, checksum included; the body follows it. Sizes are within KN_ENTRY_LIMIT. */
void kn_pack_record_write(const kn_pack_record *record, unsigned char out[KN_PACK_RECORD]);
/* Verifies a record whole. KILN_E_CORRUPT with the reason. */
kiln_status kn_pack_record_parse(kn_span bytes, const kiln_key *key, kn_pack_record *out_record,
                                 kiln_diag *diag);
/* Where facts and recipe begin in the unpacked body, and how long it is. */
typedef struct kn_pack_layout {
    size_t facts_at, recipe_at, total;
} kn_pack_layout;
kn_pack_layout kn_pack_layout_of(const kn_pack_record *record);
/* The zeros between the parts of an unpacked body. */
bool kn_pack_body_sound(const kn_pack_record *record, const char *body);

#endif
