/* Writes packs. This file must not know the cache; what comes from there is in pack_fill.c. */
#include "store/pack/pack_write.h"

#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#include "kiln/version.h"

#include "base/checked.h"
#include "base/diag.h"
#include "base/text.h"
#include "sized/sized.h"
#include "store/format/entry.h"
#include "store/pack/pack.h"
#include "store/pack/pack_train.h"
#include "sys/file.h"

static const char writing[] = "writing a pack"; /* what fails without memory */

/* False when out of memory. */
static bool make_room(void **array, size_t count, size_t *capacity, size_t element)
{
    size_t wanted = *capacity == 0 ? 64 : *capacity * 2, size = 0;
    if (count < *capacity) {
        return true;
    }
    void *grown = kn_mul_size(wanted, element, &size) ? realloc(*array, size) : NULL;
    if (grown == NULL) {
        return false;
    }
    *array = grown;
    *capacity = wanted;
    return true;
}

/* --- the file --------------------------------------------------------------------------------- */

static void emit_bytes(kiln_pack_writer *writer, const void *data, size_t size)
{
    kn_publish_write(&writer->publish, data, size); /* a failure shows at the commit */
    writer->at += size;
}

static void pad_output(kiln_pack_writer *writer)
{
    static const char zeros[KN_PACK_ALIGN];
    emit_bytes(writer, zeros, (size_t)(-writer->at % KN_PACK_ALIGN));
}

/* Remembers where the record that is written next will lie. There is room (claim). */
static void note_record(kiln_pack_writer *writer, const kn_pack_record *record, uint64_t length)
{
    writer->spots[writer->count++] =
        (kn_pack_spot){.key = record->key, .offset = writer->at, .length = length};
    if (record->created_ns > writer->created_ns) {
        writer->created_ns = record->created_ns;
    }
    writer->payload_bytes += record->payload_size;
}

/* Compresses where it saves an eighth. *out_memory is malloc'ed, or NULL where it does not pay. */
static void compress_body(kiln_pack_writer *writer, kn_span body, void **out_memory,
                          size_t *out_size, uint32_t *out_flags)
{
    bool small = body.length <= KN_PACK_SMALL && writer->prepared != NULL;
    size_t room = ZSTD_compressBound(body.length);
    void *memory = writer->raw || ZSTD_isError(room) ? NULL : malloc(room);
    *out_memory = NULL;
    *out_flags = 0;
    if (memory == NULL) {
        return;
    }
    size_t got = small ? ZSTD_compress_usingCDict(writer->context, memory, room, body.data,
                                                  body.length, writer->prepared)
                       : ZSTD_compressCCtx(writer->context, memory, room, body.data, body.length,
                                           writer->level);
    if (ZSTD_isError(got) || got > body.length - body.length / 8) {
        free(memory);
        return;
    }
    *out_memory = memory;
    *out_size = got;
    *out_flags = KN_PACK_ZSTD | (small ? KN_PACK_DICTIONARY : 0);
}

static kiln_status write_record(kiln_pack_writer *writer, kn_pack_record record, kn_span body,
                                kiln_diag *diag)
{
    unsigned char header[KN_PACK_RECORD];
    void *memory = NULL;
    size_t size = 0;
    if (!make_room((void **)&writer->spots, writer->count, &writer->capacity,
                   sizeof *writer->spots)) {
        return kn_no_memory(diag, writing);
    }
    compress_body(writer, body, &memory, &size, &record.flags);
    record.body = memory != NULL ? kn_span_of(memory, size) : body;
    kn_pack_record_write(&record, header);
    note_record(writer, &record, sizeof header + record.body.length);
    emit_bytes(writer, header, sizeof header);
    emit_bytes(writer, record.body.data, record.body.length);
    pad_output(writer);
    free(memory);
    return KILN_OK;
}

/* --- the dictionary --------------------------------------------------------------------------- */

static int by_key(const void *a, const void *b)
{
    /* Both structs begin with the key, one way or the other: see the assertions. */
    return memcmp(a, b, sizeof(kiln_key));
}
_Static_assert(offsetof(kn_pack_spot, key) == 0, "sorted by the first bytes");
_Static_assert(offsetof(kn_pack_held, record) == 0 && offsetof(kn_pack_record, key) == 0,
               "sorted by the first bytes");

static void train_writer(kiln_pack_writer *writer)
{
    size_t *sizes = calloc(writer->held_count + 1, sizeof *sizes);
    char *samples = malloc(writer->held_bytes + 1), *to = samples;
    for (size_t i = 0; sizes != NULL && samples != NULL && i < writer->held_count; i++) {
        sizes[i] = kn_pack_layout_of(&writer->held[i].record).total;
        memcpy(to, writer->held[i].body, sizes[i]);
        to += sizes[i];
    }
    if (sizes != NULL && samples != NULL) {
        kn_pack_train(samples, sizes, writer->held_count, writer->level, &writer->dictionary,
                      &writer->dictionary_size);
    }
    free(samples);
    free(sizes);
    if (writer->dictionary != NULL) {
        writer->prepared =
            ZSTD_createCDict(writer->dictionary, writer->dictionary_size, writer->level);
    }
    if (writer->prepared == NULL) { /* it goes without */
        writer->dictionary_size = 0;
    }
    writer->trained = true;
}

/* Decides on the dictionary and writes what waited for it. */
static kiln_status let_go(kiln_pack_writer *writer, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    if (writer->held_count > 0) {
        qsort(writer->held, writer->held_count, sizeof *writer->held, by_key);
    }
    if (!writer->trained) {
        train_writer(writer);
    }
    for (size_t i = 0; i < writer->held_count; i++) {
        kn_pack_held *held = &writer->held[i];
        size_t total = kn_pack_layout_of(&held->record).total;
        if (status == KILN_OK) {
            status = write_record(writer, held->record, kn_span_of(held->body, total), diag);
        }
        free(held->body);
    }
    writer->held_count = 0;
    writer->held_bytes = 0;
    writer->broken = status != KILN_OK; /* entries that were taken are lost */
    return status;
}

static kiln_status hold_record(kiln_pack_writer *writer, const kn_pack_record *record, kn_span body,
                               kiln_diag *diag)
{
    char *copy = NULL;
    if (!make_room((void **)&writer->held, writer->held_count, &writer->held_capacity,
                   sizeof *writer->held) ||
        (copy = kn_bytes_copy(body.data, body.length)) == NULL) {
        return kn_no_memory(diag, writing);
    }
    writer->held[writer->held_count++] = (kn_pack_held){.record = *record, .body = copy};
    writer->held_bytes += body.length;
    return writer->held_bytes >= KN_PACK_HELD ? let_go(writer, diag) : KILN_OK;
}

/* --- entries ---------------------------------------------------------------------------------- */

/* KILN_MISS if the key is there already; otherwise it is from now on. */
static kiln_status claim_key(kiln_pack_writer *writer, const kiln_key *key, kiln_diag *diag)
{
    static char there;
    if (kn_map_find(&writer->seen, key->bytes, sizeof key->bytes) != NULL) {
        return KILN_MISS;
    }
    return kn_map_put(&writer->seen, key->bytes, sizeof key->bytes, &there, NULL)
               ? KILN_OK
               : kn_no_memory(diag, writing);
}

kiln_status kn_pack_writer_take(kiln_pack_writer *writer, const kn_pack_record *record,
                                kn_span body, bool *out_added, kiln_diag *diag)
{
    if (!writer->open) {
        return kiln_diag_set(diag, KILN_E_INVALID, "make another writer", "adding to a pack",
                             "it is finished");
    }
    if (record->payload_size == 0 || body.length > KN_ENTRY_LIMIT ||
        body.length != kn_pack_layout_of(record).total) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, "adding to a pack", "%s",
                             record->payload_size == 0 ? "an entry is empty"
                                                       : "an entry is too large");
    }
    kiln_status status = claim_key(writer, &record->key, diag);
    if (status == KILN_MISS) {
        return KILN_OK;
    }
    if (status == KILN_OK && !writer->trained && body.length <= KN_PACK_SMALL) {
        status = hold_record(writer, record, body, diag);
    } else if (status == KILN_OK) {
        status = write_record(writer, *record, body, diag);
    }
    if (status != KILN_OK) { /* so that it can be added another time */
        (void)kn_map_remove(&writer->seen, record->key.bytes, sizeof record->key.bytes);
    }
    if (out_added != NULL) {
        *out_added = status == KILN_OK;
    }
    return status;
}

/* --- create ----------------------------------------------------------------------------------- */

/* Copies one record of the base as it lies there. */
static kiln_status copy_record(kiln_pack_writer *writer, kiln_pack *base, uint64_t index,
                               kiln_diag *diag)
{
    kiln_key key;
    kn_span bytes;
    kn_pack_record record;
    kiln_status status = kn_pack_record_at(base, index, &key, &bytes, diag);
    if (status == KILN_OK) {
        status = kn_pack_record_parse(bytes, &key, &record, diag);
    }
    if (status == KILN_OK) {
        status = claim_key(writer, &key, diag);
    }
    if (status == KILN_OK && !make_room((void **)&writer->spots, writer->count, &writer->capacity,
                                        sizeof *writer->spots)) {
        status = kn_no_memory(diag, writing);
    }
    if (status == KILN_OK) {
        note_record(writer, &record, bytes.length);
        emit_bytes(writer, bytes.data, bytes.length);
        pad_output(writer);
    }
    return status == KILN_MISS ? KILN_OK : status;
}

static kiln_status take_base(kiln_pack_writer *writer, kiln_pack *base, kiln_diag *diag)
{
    kn_span dictionary;
    kiln_status status = kn_pack_dictionary(base, &dictionary, diag);
    if (status == KILN_OK && dictionary.length > 0) {
        writer->dictionary = kn_bytes_copy(dictionary.data, dictionary.length);
        writer->prepared = ZSTD_createCDict(dictionary.data, dictionary.length, writer->level);
        if (writer->dictionary == NULL || writer->prepared == NULL) {
            return kn_no_memory(diag, writing);
        }
        writer->dictionary_size = dictionary.length;
        writer->trained = true;
    }
    for (uint64_t i = 0; status == KILN_OK && i < base->trailer.count; i++) {
        status = copy_record(writer, base, i, diag);
    }
    return status;
}

static kiln_status check_options(const kiln_pack_writer_options *options, kiln_diag *diag)
{
    if (options->level < 0 || options->level > KILN_PACK_LEVEL_MAX) {
        return kiln_diag_set(diag, KILN_E_INVALID, "see kiln/unstable/pack.h", "writing a pack",
                             "options.level is not 0 to %d", KILN_PACK_LEVEL_MAX);
    }
    return KILN_OK;
}

/* The temporary is next to the pack: a rename does not cross file systems. */
static kiln_status begin_file(kiln_pack_writer *writer, const char *path, kiln_diag *diag)
{
    unsigned char head[KN_PACK_HEAD];
    char *dir = kn_path_dir(path);
    if (dir == NULL) {
        return kn_no_memory(diag, writing);
    }
    kiln_status status = kn_publish_begin_unnamed(&writer->publish, dir, path, diag);
    free(dir);
    if (status == KILN_OK) {
        writer->open = true;
        kn_pack_head_write(head);
        emit_bytes(writer, head, sizeof head);
    }
    return status;
}

kiln_status kiln_pack_writer_create(const char *path, const kiln_pack_writer_options *options,
                                    kiln_pack_writer **out_writer, kiln_diag *diag)
{
    static const kiln_pack_writer_options none = {.struct_size = sizeof none};
    kiln_pack_writer_options room;
    *out_writer = NULL;
    options = kn_sized_view(KN_SIZED(kiln_pack_writer_options), options != NULL ? options : &none,
                            &room, diag);
    kiln_status status = options != NULL ? check_options(options, diag) : KILN_E_INVALID;
    if (status != KILN_OK) {
        return status;
    }
    kiln_pack_writer *writer = calloc(1, sizeof *writer);
    if (writer == NULL) {
        return kn_no_memory(diag, writing);
    }
    kn_map_init(&writer->seen);
    writer->level = options->level != 0 ? options->level : KILN_PACK_LEVEL_DEFAULT;
    writer->raw = options->raw;
    writer->trained = options->raw;
    writer->context = ZSTD_createCCtx();
    status = writer->context != NULL ? begin_file(writer, path, diag) : kn_no_memory(diag, writing);
    if (status == KILN_OK && options->base != NULL) {
        status = take_base(writer, options->base, diag);
    }
    if (status != KILN_OK) {
        kiln_pack_writer_destroy(writer);
        return status;
    }
    *out_writer = writer;
    return KILN_OK;
}

/* --- finish ----------------------------------------------------------------------------------- */

static void write_index(kiln_pack_writer *writer, char *index, kn_pack_trailer *trailer)
{
    char *places = index + writer->count * KN_PACK_KEY;
    for (size_t i = 0; i < writer->count; i++) {
        const kn_pack_spot *spot = &writer->spots[i];
        memcpy(index + i * KN_PACK_KEY, spot->key.bytes, KN_PACK_KEY);
        kn_put_u64(places + i * KN_PACK_PLACE, spot->offset);
        kn_put_u64(places + i * KN_PACK_PLACE + 8, spot->length);
        trailer->fanout[spot->key.bytes[0]]++;
    }
    for (size_t i = 1; i < KN_PACK_FANOUT; i++) {
        trailer->fanout[i] += trailer->fanout[i - 1];
    }
    const kn_span covered = kn_span_of(index, writer->count * (KN_PACK_KEY + KN_PACK_PLACE));
    kn_checksum(&covered, 1, trailer->index_sum);
    emit_bytes(writer, covered.data, covered.length);
}

static kiln_status write_end(kiln_pack_writer *writer, kn_pack_trailer *trailer, kiln_diag *diag)
{
    unsigned char end[KN_PACK_TRAILER];
    char *index = calloc(writer->count + 1, KN_PACK_KEY + KN_PACK_PLACE);
    if (index == NULL || writer->count > UINT32_MAX) {
        free(index);
        return kn_no_memory(diag, writing);
    }
    const kn_span dictionary = kn_span_of(writer->dictionary, writer->dictionary_size);
    trailer->dictionary_at = writer->at;
    trailer->dictionary_size = dictionary.length;
    kn_checksum(&dictionary, 1, trailer->dictionary_sum);
    emit_bytes(writer, dictionary.data, dictionary.length);
    pad_output(writer);
    trailer->index_at = writer->at;
    if (writer->count > 0) {
        qsort(writer->spots, writer->count, sizeof *writer->spots, by_key);
    }
    write_index(writer, index, trailer);
    trailer->count = writer->count;
    trailer->created_ns = writer->created_ns;
    trailer->file_size = writer->at + sizeof end;
    kn_text_put(trailer->writer, sizeof trailer->writer, KILN_VERSION);
    kn_pack_trailer_write(trailer, end);
    emit_bytes(writer, end, sizeof end);
    free(index);
    return KILN_OK;
}

kiln_status kiln_pack_writer_finish(kiln_pack_writer *writer, kiln_pack_info *out_info,
                                    kiln_diag *diag)
{
    kn_pack_trailer trailer = {.count = 0};
    kiln_pack_info info;
    if (out_info != NULL &&
        kn_sized_begin(KN_SIZED(kiln_pack_info), out_info, &info, diag) != KILN_OK) {
        return KILN_E_INVALID;
    }
    if (!writer->open) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, "finishing a pack", "it is finished");
    }
    kiln_status status = writer->broken ? kn_no_memory(diag, writing) : let_go(writer, diag);
    if (status == KILN_OK) {
        status = write_end(writer, &trailer, diag);
    }
    writer->open = false;
    if (status != KILN_OK) {
        kn_publish_abort(&writer->publish);
        return status;
    }
    kn_publish_share(&writer->publish);
    kn_publish_insist(&writer->publish);
    status = kn_publish_commit(&writer->publish, true, diag);
    if (status == KILN_OK && out_info != NULL) {
        info = (kiln_pack_info){.entries = trailer.count,
                                .file_bytes = trailer.file_size,
                                .dictionary_bytes = trailer.dictionary_size,
                                .payload_bytes = writer->payload_bytes,
                                .created_ns = trailer.created_ns};
        memcpy(info.kiln_version, trailer.writer, sizeof trailer.writer);
        kn_sized_end(KN_SIZED(kiln_pack_info), &info, out_info);
    }
    return status;
}

void kiln_pack_writer_destroy(kiln_pack_writer *writer)
{
    if (writer == NULL) {
        return;
    }
    if (writer->open) {
        kn_publish_abort(&writer->publish);
    }
    for (size_t i = 0; i < writer->held_count; i++) {
        free(writer->held[i].body);
    }
    (void)ZSTD_freeCDict(writer->prepared);
    (void)ZSTD_freeCCtx(writer->context);
    free(writer->dictionary);
    free(writer->held);
    free(writer->spots);
    kn_map_deinit(&writer->seen);
    free(writer);
}
