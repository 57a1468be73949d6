/* Reads a pack. This file must not know the cache. */
#include "store/pack/pack.h"

#include <stdlib.h>
#include <string.h>

#include <zstd.h>
#include <zstd_errors.h>

#include "base/checked.h"
#include "base/diag.h"
#include "base/text.h"
#include "store/format/blob.h"

#define OTHERS_MAY_WRITE 0002u

static kiln_status corrupt_pack(const kiln_pack *pack, kiln_diag *diag, const char *why)
{
    return kiln_diag_set(diag, KILN_E_CORRUPT, "make the pack again", pack->path, "%s", why);
}

/* --- open and close --------------------------------------------------------------------------- */

static kiln_status start_pack(kiln_pack *pack, kiln_diag *diag)
{
    kiln_status status =
        kn_pack_trailer_parse(kn_span_of(pack->map.data, pack->map.size), &pack->trailer, diag);
    if (status == KILN_OK) {
        pack->keys = (const char *)pack->map.data + pack->trailer.index_at;
        pack->places = pack->keys + pack->trailer.count * KN_PACK_KEY;
        pack->info = (kiln_pack_info){.struct_size = sizeof pack->info,
                                      .entries = pack->trailer.count,
                                      .file_bytes = pack->map.size,
                                      .dictionary_bytes = pack->trailer.dictionary_size,
                                      .created_ns = pack->trailer.created_ns};
        memcpy(pack->info.kiln_version, pack->trailer.writer, sizeof pack->info.kiln_version);
    }
    return status;
}

static kiln_status make_pack(const char *path, kiln_pack **out_pack, kiln_diag *diag)
{
    kiln_pack *pack = calloc(1, sizeof *pack);
    char *copy = kn_text_copy(path);
    *out_pack = NULL;
    if (pack == NULL || copy == NULL) {
        free(copy);
        free(pack);
        return kn_no_memory(diag, "opening a pack");
    }
    atomic_init(&pack->references, 1);
    pack->path = copy;
    *out_pack = pack;
    return KILN_OK;
}

kiln_status kiln_pack_open(const char *path, kiln_pack **out_pack, kiln_diag *diag)
{
    kiln_pack *pack = NULL;
    *out_pack = NULL;
    kiln_status status = make_pack(path, &pack, diag);
    if (status != KILN_OK) {
        return status;
    }
    status = kn_map_file_open(path, &pack->map, diag);
    if (status == KILN_OK && (pack->map.facts.mode & OTHERS_MAY_WRITE)) {
        status = kiln_diag_set(diag, KILN_E_UNSUPPORTED,
                               "run chmod o-w on it, if you trust its contents", path,
                               "it is world-writable, and it holds code that will run");
    }
    if (status == KILN_OK) {
        status = start_pack(pack, diag);
    } else if (status == KILN_E_INVALID) {
        status = KILN_E_CORRUPT;
    }
    if (status != KILN_OK) {
        kn_pack_release(pack);
        return status;
    }
    *out_pack = pack;
    return KILN_OK;
}

kiln_status kn_pack_of(kn_span bytes, kiln_pack **out_pack, kiln_diag *diag)
{
    kiln_pack *pack = NULL;
    *out_pack = NULL;
    kiln_status status = make_pack("", &pack, diag);
    if (status != KILN_OK) {
        return status;
    }
    pack->map.data = bytes.data;
    pack->map.size = bytes.length;
    pack->map.facts.kind = KN_FILE_OTHER; /* not ours to unmap */
    status = start_pack(pack, diag);
    if (status != KILN_OK) {
        kn_pack_release(pack);
        return status;
    }
    *out_pack = pack;
    return KILN_OK;
}

void kn_pack_release(kiln_pack *pack)
{
    if (pack == NULL ||
        atomic_fetch_sub_explicit(&pack->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    (void)ZSTD_freeDDict(atomic_load(&pack->dictionary));
    (void)ZSTD_freeDCtx(atomic_load(&pack->spare));
    if (pack->map.facts.kind == KN_FILE_REGULAR) {
        kn_map_file_close(&pack->map);
    }
    free(pack->path);
    free(pack);
}

void kiln_pack_close(kiln_pack *pack)
{
    kn_pack_release(pack);
}

/* --- find ------------------------------------------------------------------------------------- */

kiln_status kn_pack_record_at(const kiln_pack *pack, uint64_t index, kiln_key *out_key,
                              kn_span *out_record, kiln_diag *diag)
{
    const char *place = pack->places + index * KN_PACK_PLACE;
    const uint64_t offset = kn_get_u64(place), length = kn_get_u64(place + 8);
    const uint64_t end = pack->trailer.dictionary_at;
    memcpy(out_key->bytes, pack->keys + index * KN_PACK_KEY, sizeof out_key->bytes);
    *out_record = kn_span_of(NULL, 0);
    if (offset < KN_PACK_HEAD || offset % KN_PACK_ALIGN != 0 || offset > end ||
        length > end - offset || length < KN_PACK_RECORD) {
        return corrupt_pack(pack, diag, "its index names a record outside the file");
    }
    *out_record = kn_span_of((const char *)pack->map.data + offset, (size_t)length);
    return KILN_OK;
}

kiln_status kn_pack_find(const kiln_pack *pack, const kiln_key *key, kn_span *out_record,
                         kiln_diag *diag)
{
    const uint32_t *fanout = pack->trailer.fanout;
    uint32_t low = key->bytes[0] > 0 ? fanout[key->bytes[0] - 1] : 0;
    uint32_t high = fanout[key->bytes[0]];
    *out_record = kn_span_of(NULL, 0);
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = memcmp(key->bytes, pack->keys + (size_t)middle * KN_PACK_KEY, KN_PACK_KEY);
        if (order == 0) {
            kiln_key found;
            return kn_pack_record_at(pack, middle, &found, out_record, diag);
        }
        if (order < 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return KILN_MISS;
}

/* --- load ------------------------------------------------------------------------------------- */

kiln_status kn_pack_dictionary(const kiln_pack *pack, kn_span *out_dictionary, kiln_diag *diag)
{
    const kn_span bytes = kn_span_of((const char *)pack->map.data + pack->trailer.dictionary_at,
                                     (size_t)pack->trailer.dictionary_size);
    unsigned char sum[KN_CHECKSUM_SIZE];
    *out_dictionary = kn_span_of(NULL, 0);
    if (bytes.length == 0) {
        return KILN_OK;
    }
    kn_checksum(&bytes, 1, sum);
    if (memcmp(sum, pack->trailer.dictionary_sum, sizeof sum) != 0) {
        return corrupt_pack(pack, diag, "the checksum of its dictionary does not match");
    }
    *out_dictionary = bytes;
    return KILN_OK;
}

/* Two threads may make it at once; one is kept. */
static kiln_status need_dictionary(kiln_pack *pack, const ZSTD_DDict **out_dictionary,
                                   kiln_diag *diag)
{
    ZSTD_DDict *made = atomic_load_explicit(&pack->dictionary, memory_order_acquire);
    *out_dictionary = made;
    if (made != NULL) {
        return KILN_OK;
    }
    kn_span bytes;
    kiln_status status = kn_pack_dictionary(pack, &bytes, diag);
    if (status == KILN_OK && bytes.length == 0) {
        status = corrupt_pack(pack, diag, "a record needs a dictionary and there is none");
    }
    if (status != KILN_OK) {
        return status;
    }
    ZSTD_DDict *nobody = NULL;
    made = ZSTD_createDDict(bytes.data, bytes.length);
    if (made == NULL) {
        return kiln_diag_set(diag, KILN_E_NOMEM, NULL, pack->path, "no memory for its dictionary");
    }
    if (!atomic_compare_exchange_strong(&pack->dictionary, &nobody, made)) {
        (void)ZSTD_freeDDict(made);
        made = nobody;
    }
    *out_dictionary = made;
    return KILN_OK;
}

static kiln_status unpack_body(kiln_pack *pack, const kn_pack_record *record, char *memory,
                               size_t size, kiln_diag *diag)
{
    const ZSTD_DDict *dictionary = NULL;
    if (record->flags & KN_PACK_DICTIONARY) {
        kiln_status status = need_dictionary(pack, &dictionary, diag);
        if (status != KILN_OK) {
            return status;
        }
    }
    /* A context is 150 KB to make: one is kept for the next reader. */
    ZSTD_DCtx *context = atomic_exchange(&pack->spare, NULL);
    context = context != NULL ? context : ZSTD_createDCtx();
    if (context == NULL) {
        return kiln_diag_set(diag, KILN_E_NOMEM, NULL, pack->path, "no memory to unpack an entry");
    }
    size_t got =
        dictionary != NULL
            ? ZSTD_decompress_usingDDict(context, memory, size, record->body.data,
                                         record->body.length, dictionary)
            : ZSTD_decompressDCtx(context, memory, size, record->body.data, record->body.length);
    ZSTD_DCtx *nobody = NULL;
    if (!atomic_compare_exchange_strong(&pack->spare, &nobody, context)) {
        (void)ZSTD_freeDCtx(context);
    }
    if (ZSTD_getErrorCode(got) == ZSTD_error_memory_allocation) {
        return kiln_diag_set(diag, KILN_E_NOMEM, NULL, pack->path, "no memory to unpack an entry");
    }
    return !ZSTD_isError(got) && got == size
               ? KILN_OK
               : corrupt_pack(pack, diag, "a record does not unpack to the size it names");
}

static void give_back(void *pack)
{
    kn_pack_release(pack);
}

/* The blob lies in the mapping and holds on to it. */
static kiln_status lend_record(kiln_pack *pack, const kn_pack_record *record, size_t recipe_at,
                               kiln_blob **out_blob, kiln_diag *diag)
{
    kiln_status status = kn_blob_adopt((void *)(uintptr_t)record->body.data, record->body.length, 0,
                                       record->payload_size, record->facts_size, out_blob, diag);
    if (status != KILN_OK) {
        return status;
    }
    (*out_blob)->memory = NULL;
    (*out_blob)->owner = pack;
    (*out_blob)->give_back = give_back;
    (*out_blob)->recipe = kn_span_of(record->body.data + recipe_at, record->recipe_size);
    atomic_fetch_add_explicit(&pack->references, 1, memory_order_relaxed);
    return KILN_OK;
}

static kiln_status unpack_record(kiln_pack *pack, const kn_pack_record *record,
                                 const kn_pack_layout *layout, kiln_blob **out_blob,
                                 kiln_diag *diag)
{
    /* Before any memory is asked for: is the frame of that size at all? */
    unsigned long long said = ZSTD_getFrameContentSize(record->body.data, record->body.length);
    if (said != layout->total) {
        return corrupt_pack(pack, diag, "a record does not unpack to the size it names");
    }
    char *memory = malloc(layout->total);
    if (memory == NULL) {
        return kiln_diag_set(diag, KILN_E_NOMEM, NULL, pack->path, "no memory to unpack an entry");
    }
    kiln_status status = unpack_body(pack, record, memory, layout->total, diag);
    if (status == KILN_OK && !kn_pack_body_sound(record, memory)) {
        status = corrupt_pack(pack, diag, "the parts of a record do not match");
    }
    if (status == KILN_OK) {
        status = kn_blob_adopt(memory, layout->total, 0, record->payload_size, record->facts_size,
                               out_blob, diag);
    }
    if (status != KILN_OK) {
        free(memory);
        return status;
    }
    (*out_blob)->recipe = kn_span_of(memory + layout->recipe_at, record->recipe_size);
    return KILN_OK;
}

kiln_status kn_pack_load(kiln_pack *pack, const kn_pack_record *record, kiln_blob **out_blob,
                         kiln_diag *diag)
{
    const kn_pack_layout layout = kn_pack_layout_of(record);
    kiln_status status;
    *out_blob = NULL;
    if (record->flags & KN_PACK_ZSTD) {
        status = unpack_record(pack, record, &layout, out_blob, diag);
    } else if (kn_pack_body_sound(record, record->body.data)) {
        status = lend_record(pack, record, layout.recipe_at, out_blob, diag);
    } else {
        status = corrupt_pack(pack, diag, "the parts of a record do not match");
    }
    if (status == KILN_OK) {
        atomic_store_explicit(&(*out_blob)->compile_ns, record->compile_ns, memory_order_relaxed);
    }
    return status;
}

kiln_status kn_pack_fetch(kiln_pack *pack, const kiln_key *key, kn_pack_record *out_record,
                          kiln_blob **out_blob, kiln_diag *diag)
{
    kn_span bytes;
    *out_blob = NULL;
    kiln_status status = kn_pack_find(pack, key, &bytes, diag);
    if (status == KILN_OK) {
        status = kn_pack_record_parse(bytes, key, out_record, diag);
    }
    return status == KILN_OK ? kn_pack_load(pack, out_record, out_blob, diag) : status;
}

kiln_status kiln_pack_get(kiln_pack *pack, const kiln_key *key, kiln_blob **out_blob,
                          kiln_diag *diag)
{
    kn_pack_record record;
    return kn_pack_fetch(pack, key, &record, out_blob, diag);
}
