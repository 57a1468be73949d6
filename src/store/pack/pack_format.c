/* Reads and writes the parts of a pack file. This file must not know where bytes come from or go
 * to. */
#include "store/pack/pack_format.h"

#include <string.h>

#include "base/checked.h"
#include "store/format/blob.h"
#include "store/format/entry.h"

static const unsigned char head_magic[8] = {0x89, 'K', 'P', 'K', '\r', '\n', 0x1a, '\n'};
static const unsigned char tail_magic[8] = {0x89, 'K', 'P', 'E', '\r', '\n', 0x1a, '\n'};

enum {
    AT_HEAD_VERSION = 8,

    AT_COUNT = 1024, /* after the fan-out */
    AT_INDEX = 1032,
    AT_DICTIONARY = 1040,
    AT_DICTIONARY_SIZE = 1048,
    AT_DICTIONARY_SUM = 1056,
    AT_INDEX_SUM = 1072,
    AT_CREATED_NS = 1088,
    AT_FILE_SIZE = 1096,
    AT_WRITER = 1104,
    AT_VERSION = 1120,
    AT_FLAGS = 1124,
    AT_MAGIC = 1128,
    AT_CHECKSUM = 1136, /* of everything before it */

    AT_RECORD_KEY = 16, /* from here on everything is under the record's checksum */
    AT_RECORD_COMPILE_NS = 48,
    AT_RECORD_CREATED_NS = 56,
    AT_RECORD_FLAGS = 64,
    AT_RECORD_STORED = 68,
    AT_RECORD_PAYLOAD = 72,
    AT_RECORD_FACTS = 76,
    AT_RECORD_RECIPE = 80,
    AT_RECORD_ZERO = 84,
    AT_RECORD_WRITER = 96,

    WRITER_SIZE = 16,
};

static kiln_status corrupt_format(kiln_diag *diag, const char *why)
{
    return kiln_diag_set(diag, KILN_E_CORRUPT, "make the pack again", "reading a pack", "%s", why);
}

static void put_writer(unsigned char *to, const char *writer)
{
    size_t length = strlen(writer);
    memset(to, 0, WRITER_SIZE);
    memcpy(to, writer, length < WRITER_SIZE ? length : WRITER_SIZE);
}

/* --- head and trailer ------------------------------------------------------------------------- */

void kn_pack_head_write(unsigned char out[KN_PACK_HEAD])
{
    memset(out, 0, KN_PACK_HEAD);
    memcpy(out, head_magic, sizeof head_magic);
    kn_put_u32(out + AT_HEAD_VERSION, KN_PACK_VERSION);
}

void kn_pack_trailer_write(const kn_pack_trailer *trailer, unsigned char out[KN_PACK_TRAILER])
{
    memset(out, 0, KN_PACK_TRAILER);
    for (size_t i = 0; i < KN_PACK_FANOUT; i++) {
        kn_put_u32(out + 4 * i, trailer->fanout[i]);
    }
    kn_put_u64(out + AT_COUNT, trailer->count);
    kn_put_u64(out + AT_INDEX, trailer->index_at);
    kn_put_u64(out + AT_DICTIONARY, trailer->dictionary_at);
    kn_put_u64(out + AT_DICTIONARY_SIZE, trailer->dictionary_size);
    memcpy(out + AT_DICTIONARY_SUM, trailer->dictionary_sum, KN_CHECKSUM_SIZE);
    memcpy(out + AT_INDEX_SUM, trailer->index_sum, KN_CHECKSUM_SIZE);
    kn_put_u64(out + AT_CREATED_NS, (uint64_t)trailer->created_ns);
    kn_put_u64(out + AT_FILE_SIZE, trailer->file_size);
    put_writer(out + AT_WRITER, trailer->writer);
    kn_put_u32(out + AT_VERSION, KN_PACK_VERSION);
    memcpy(out + AT_MAGIC, tail_magic, sizeof tail_magic);
    const kn_span covered = kn_span_of(out, AT_CHECKSUM);
    kn_checksum(&covered, 1, out + AT_CHECKSUM);
}

/* The parts follow each other as they must and fill the file. */
static bool trailer_fits(const kn_pack_trailer *t, uint64_t trailer_at)
{
    uint64_t index_size = t->count * (KN_PACK_KEY + KN_PACK_PLACE);
    bool ordered = t->count <= UINT32_MAX && t->index_at >= KN_PACK_HEAD &&
                   t->index_at <= trailer_at && trailer_at - t->index_at == index_size &&
                   t->index_at % KN_PACK_ALIGN == 0 && t->dictionary_at % KN_PACK_ALIGN == 0 &&
                   t->dictionary_at >= KN_PACK_HEAD && t->dictionary_at <= t->index_at &&
                   t->dictionary_size <= t->index_at - t->dictionary_at;
    for (size_t i = 1; ordered && i < KN_PACK_FANOUT; i++) {
        ordered = t->fanout[i - 1] <= t->fanout[i];
    }
    return ordered && t->fanout[KN_PACK_FANOUT - 1] == t->count;
}

static kiln_status check_magic(kn_span file, const char *trailer, kiln_diag *diag)
{
    unsigned char sum[KN_CHECKSUM_SIZE];
    if (memcmp(file.data, head_magic, sizeof head_magic) != 0) {
        return corrupt_format(diag, "it does not start with the magic of a pack");
    }
    if (kn_get_u32(file.data + AT_HEAD_VERSION) != KN_PACK_VERSION) {
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, "make the pack with this version of kiln",
                             "reading a pack", "it is of version %u, which this kiln does not know",
                             (unsigned)kn_get_u32(file.data + AT_HEAD_VERSION));
    }
    if (memcmp(trailer + AT_MAGIC, tail_magic, sizeof tail_magic) != 0) {
        return corrupt_format(diag, "it does not end with the trailer of a pack: it is truncated");
    }
    const kn_span covered = kn_span_of(trailer, AT_CHECKSUM);
    kn_checksum(&covered, 1, sum);
    if (memcmp(sum, trailer + AT_CHECKSUM, sizeof sum) != 0) {
        return corrupt_format(diag, "the checksum of its trailer does not match");
    }
    return KILN_OK;
}

kiln_status kn_pack_trailer_parse(kn_span file, kn_pack_trailer *out_trailer, kiln_diag *diag)
{
    memset(out_trailer, 0, sizeof *out_trailer);
    if (file.length < KN_PACK_HEAD + KN_PACK_TRAILER) {
        return corrupt_format(diag, "it is shorter than an empty pack");
    }
    const uint64_t trailer_at = file.length - KN_PACK_TRAILER;
    const char *from = file.data + trailer_at;
    kiln_status status = check_magic(file, from, diag);
    if (status != KILN_OK) {
        return status;
    }
    kn_pack_trailer t = {.count = kn_get_u64(from + AT_COUNT),
                         .index_at = kn_get_u64(from + AT_INDEX),
                         .dictionary_at = kn_get_u64(from + AT_DICTIONARY),
                         .dictionary_size = kn_get_u64(from + AT_DICTIONARY_SIZE),
                         .created_ns = (int64_t)kn_get_u64(from + AT_CREATED_NS),
                         .file_size = kn_get_u64(from + AT_FILE_SIZE)};
    for (size_t i = 0; i < KN_PACK_FANOUT; i++) {
        t.fanout[i] = kn_get_u32(from + 4 * i);
    }
    memcpy(t.dictionary_sum, from + AT_DICTIONARY_SUM, KN_CHECKSUM_SIZE);
    memcpy(t.index_sum, from + AT_INDEX_SUM, KN_CHECKSUM_SIZE);
    memcpy(t.writer, from + AT_WRITER, WRITER_SIZE);
    if (kn_get_u32(from + AT_VERSION) != KN_PACK_VERSION || kn_get_u32(from + AT_FLAGS) != 0 ||
        t.file_size != file.length || !trailer_fits(&t, trailer_at)) {
        return corrupt_format(diag, "its parts do not match");
    }
    *out_trailer = t;
    return KILN_OK;
}

/* --- records ---------------------------------------------------------------------------------- */

static void sum_record(const void *header, kn_span body, unsigned char sum[KN_CHECKSUM_SIZE])
{
    const char *from = (const char *)header + AT_RECORD_KEY;
    const kn_span covered[] = {kn_span_of(from, KN_PACK_RECORD - AT_RECORD_KEY), body};
    if (body.data == (const char *)header + KN_PACK_RECORD) {
        /* One piece is several times faster than two. */
        const kn_span whole = kn_span_of(from, KN_PACK_RECORD - AT_RECORD_KEY + body.length);
        kn_checksum(&whole, 1, sum);
    } else {
        kn_checksum(covered, 2, sum);
    }
}

void kn_pack_record_write(const kn_pack_record *record, unsigned char out[KN_PACK_RECORD])
{
    memset(out, 0, KN_PACK_RECORD);
    memcpy(out + AT_RECORD_KEY, record->key.bytes, sizeof record->key.bytes);
    kn_put_u64(out + AT_RECORD_COMPILE_NS, record->compile_ns);
    kn_put_u64(out + AT_RECORD_CREATED_NS, (uint64_t)record->created_ns);
    kn_put_u32(out + AT_RECORD_FLAGS, record->flags);
    kn_put_u32(out + AT_RECORD_STORED, (uint32_t)record->body.length);
    kn_put_u32(out + AT_RECORD_PAYLOAD, (uint32_t)record->payload_size);
    kn_put_u32(out + AT_RECORD_FACTS, (uint32_t)record->facts_size);
    kn_put_u32(out + AT_RECORD_RECIPE, (uint32_t)record->recipe_size);
    put_writer(out + AT_RECORD_WRITER, record->writer);
    sum_record(out, record->body, out);
}

/* Each part is at most KN_ENTRY_LIMIT: no sum can wrap. */
static size_t padded_size(size_t size)
{
    return (size + KN_BLOB_ALIGN - 1) & ~(size_t)(KN_BLOB_ALIGN - 1);
}

kn_pack_layout kn_pack_layout_of(const kn_pack_record *record)
{
    const size_t facts_at = padded_size(record->payload_size);
    const size_t recipe_at = facts_at + padded_size(record->facts_size);
    return (kn_pack_layout){facts_at, recipe_at, recipe_at + record->recipe_size};
}

bool kn_pack_body_sound(const kn_pack_record *record, const char *body)
{
    const kn_pack_layout layout = kn_pack_layout_of(record);
    char any = 0;
    for (size_t i = record->payload_size; i < layout.facts_at; i++) {
        any |= body[i];
    }
    for (size_t i = layout.facts_at + record->facts_size; i < layout.recipe_at; i++) {
        any |= body[i];
    }
    return any == 0;
}

static bool lengths_fit(const kn_pack_record *record, size_t stored)
{
    const uint32_t known = KN_PACK_ZSTD | KN_PACK_DICTIONARY;
    if ((record->flags & ~known) || record->flags == KN_PACK_DICTIONARY || stored == 0 ||
        stored != record->body.length || record->payload_size == 0 ||
        record->payload_size > KN_ENTRY_LIMIT || record->facts_size > KN_ENTRY_LIMIT ||
        record->recipe_size > KN_ENTRY_LIMIT) {
        return false;
    }
    size_t total = kn_pack_layout_of(record).total;
    return total <= KN_ENTRY_LIMIT && ((record->flags & KN_PACK_ZSTD) || stored == total);
}

kiln_status kn_pack_record_parse(kn_span bytes, const kiln_key *key, kn_pack_record *out_record,
                                 kiln_diag *diag)
{
    unsigned char sum[KN_CHECKSUM_SIZE];
    const char *from = bytes.data;
    if (bytes.length < KN_PACK_RECORD) {
        return corrupt_format(diag, "a record is shorter than its header");
    }
    kn_pack_record record = {.body =
                                 kn_span_of(from + KN_PACK_RECORD, bytes.length - KN_PACK_RECORD)};
    sum_record(from, record.body, sum);
    if (memcmp(sum, from, sizeof sum) != 0) {
        return corrupt_format(diag, "the checksum of a record does not match");
    }
    memcpy(record.key.bytes, from + AT_RECORD_KEY, sizeof record.key.bytes);
    if (memcmp(record.key.bytes, key->bytes, sizeof key->bytes) != 0) {
        return corrupt_format(diag, "a record belongs to another key");
    }
    record.compile_ns = kn_get_u64(from + AT_RECORD_COMPILE_NS);
    record.created_ns = (int64_t)kn_get_u64(from + AT_RECORD_CREATED_NS);
    record.flags = kn_get_u32(from + AT_RECORD_FLAGS);
    record.payload_size = kn_get_u32(from + AT_RECORD_PAYLOAD);
    record.facts_size = kn_get_u32(from + AT_RECORD_FACTS);
    record.recipe_size = kn_get_u32(from + AT_RECORD_RECIPE);
    memcpy(record.writer, from + AT_RECORD_WRITER, WRITER_SIZE);
    if (!lengths_fit(&record, kn_get_u32(from + AT_RECORD_STORED)) ||
        kn_get_u32(from + AT_RECORD_ZERO) != 0 || kn_get_u64(from + AT_RECORD_ZERO + 4) != 0) {
        return corrupt_format(diag, "the lengths of a record do not match");
    }
    *out_record = record;
    return KILN_OK;
}
