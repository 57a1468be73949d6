/* Reads and writes the entry file. This file must not know where files lie. */
#include "store/format/entry.h"

#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#include "kiln/version.h"

#include "base/checked.h"
#include "base/diag.h"
#include "base/text.h"
#include "store/format/blob.h"
#include "store/format/checksum.h"
#include "store/format/unzip.h"

/* Not ASCII, a line end of either kind, an end-of-file: a copy in text mode does not survive. */
static const unsigned char magic[8] = {0x89, 'K', 'L', 'N', '\r', '\n', 0x1a, '\n'};

enum {
    AT_CHECKSUM = 8,
    AT_VERSION = 24, /* from here on everything is under the checksum */
    AT_FLAGS = 28,
    AT_KEY = 32,
    AT_COMPILE_NS = 64,
    AT_CREATED_NS = 72,
    AT_PAYLOAD_SIZE = 80,
    AT_STORED_SIZE = 88,
    AT_FACTS_SIZE = 96,
    AT_RECIPE_SIZE = 104,
    AT_WRITER = 112,
    WRITER_SIZE = 16,
};

static kiln_status corrupt_entry(kiln_diag *diag, const char *why)
{
    return kiln_diag_set(diag, KILN_E_CORRUPT, NULL, "reading an entry", "%s", why);
}

static bool is_zero(const char *from, const char *to)
{
    char any = 0;
    for (; from < to; from++) {
        any |= *from;
    }
    return any == 0;
}

/* The three lengths against the bytes that are there. */
static bool split_entry(kn_span bytes, kn_entry *entry)
{
    const char *header = bytes.data;
    uint64_t stored = kn_get_u64(header + AT_STORED_SIZE);
    uint64_t facts = kn_get_u64(header + AT_FACTS_SIZE);
    uint64_t recipe = kn_get_u64(header + AT_RECIPE_SIZE);
    if (stored > KN_ENTRY_LIMIT || facts > KN_ENTRY_LIMIT || recipe > KN_ENTRY_LIMIT) {
        return false;
    }
    size_t stored_padded = 0, facts_padded = 0, total = 0;
    bool fits = kn_blob_padded((size_t)stored, &stored_padded) &&
                kn_blob_padded((size_t)facts, &facts_padded) &&
                kn_add_size(KN_ENTRY_HEADER, stored_padded, &total) &&
                kn_add_size(total, facts_padded, &total) &&
                kn_add_size(total, (size_t)recipe, &total) && total == bytes.length;
    if (!fits) {
        return false;
    }
    const char *at = header + KN_ENTRY_HEADER;
    entry->payload = kn_span_of(at, (size_t)stored);
    entry->facts = kn_span_of(at + stored_padded, (size_t)facts);
    entry->recipe = kn_span_of(at + stored_padded + facts_padded, (size_t)recipe);
    return is_zero(at + stored, entry->facts.data) &&
           is_zero(entry->facts.data + facts, entry->recipe.data);
}

bool kn_entry_may_begin(const void *header, uint64_t size)
{
    const char *at = header;
    const uint64_t stored = kn_get_u64(at + AT_STORED_SIZE);
    const uint64_t facts = kn_get_u64(at + AT_FACTS_SIZE);
    const uint64_t recipe = kn_get_u64(at + AT_RECIPE_SIZE);
    size_t stored_padded = 0, facts_padded = 0;
    return memcmp(at, magic, sizeof magic) == 0 &&
           kn_get_u32(at + AT_VERSION) == KN_ENTRY_VERSION && stored <= KN_ENTRY_LIMIT &&
           facts <= KN_ENTRY_LIMIT && recipe <= KN_ENTRY_LIMIT &&
           kn_blob_padded((size_t)stored, &stored_padded) &&
           kn_blob_padded((size_t)facts, &facts_padded) &&
           KN_ENTRY_HEADER + (uint64_t)stored_padded + facts_padded + recipe == size;
}

kiln_status kn_entry_parse(kn_span bytes, const kiln_key *key, kn_entry *out_entry, kiln_diag *diag)
{
    memset(out_entry, 0, sizeof *out_entry);
    const char *header = bytes.data;
    if (bytes.length < KN_ENTRY_HEADER) {
        return corrupt_entry(diag, "it is shorter than a header");
    }
    if (memcmp(header, magic, sizeof magic) != 0) {
        return corrupt_entry(diag, "it does not start with the magic of an entry");
    }
    kn_span covered = kn_span_of(header + AT_VERSION, bytes.length - AT_VERSION);
    unsigned char checksum[KN_CHECKSUM_SIZE];
    kn_checksum(&covered, 1, checksum);
    if (memcmp(header + AT_CHECKSUM, checksum, sizeof checksum) != 0) {
        return corrupt_entry(diag, "its checksum does not match");
    }
    /* What follows is what some writer meant, but not yet what this reader understands. */
    kn_entry entry = {0};
    entry.flags = kn_get_u32(header + AT_FLAGS);
    if (kn_get_u32(header + AT_VERSION) != KN_ENTRY_VERSION ||
        (entry.flags & ~(uint32_t)KN_ENTRY_ZSTD)) {
        return corrupt_entry(diag, "it is of a version that this kiln does not know");
    }
    memcpy(entry.key.bytes, header + AT_KEY, sizeof entry.key.bytes);
    if (key != NULL && memcmp(entry.key.bytes, key->bytes, sizeof key->bytes) != 0) {
        return corrupt_entry(diag, "it belongs to another key");
    }
    entry.payload_size = kn_get_u64(header + AT_PAYLOAD_SIZE);
    bool packed = (entry.flags & KN_ENTRY_ZSTD) != 0;
    if (!split_entry(bytes, &entry) || entry.payload.length == 0 || entry.payload_size == 0 ||
        entry.payload_size > KN_ENTRY_LIMIT ||
        (!packed && entry.payload.length != entry.payload_size)) {
        return corrupt_entry(diag, "its lengths do not match");
    }
    entry.compile_ns = kn_get_u64(header + AT_COMPILE_NS);
    entry.created_ns = (int64_t)kn_get_u64(header + AT_CREATED_NS);
    memcpy(entry.writer, header + AT_WRITER, WRITER_SIZE);
    *out_entry = entry;
    return KILN_OK;
}

uint64_t kn_entry_unpacked(const kn_entry *entry)
{
    /* Each is below KN_ENTRY_LIMIT. */
    return entry->payload_size + entry->facts.length + entry->recipe.length;
}

/* Lays out the body again, with the payload unpacked. */
static kiln_status unpack_entry(const kn_entry *entry, kiln_blob **out_blob, kiln_diag *diag)
{
    size_t size = (size_t)entry->payload_size;
    size_t padded = 0, facts_padded = 0;
    (void)kn_blob_padded(size, &padded); /* both are below KN_ENTRY_LIMIT */
    (void)kn_blob_padded(entry->facts.length, &facts_padded);
    size_t recipe_at = padded + facts_padded;
    size_t total = recipe_at + entry->recipe.length;
    char *memory = calloc(1, total);
    if (memory == NULL) {
        return kn_no_memory(diag, "unpacking an entry");
    }
    kiln_status status = kn_unzip(entry->payload, (kn_span){NULL, 0}, entry->until, memory, size);
    if (status != KILN_OK) {
        free(memory);
        return status == KILN_E_CORRUPT
                   ? corrupt_entry(diag, "its payload does not unpack to the size it names")
                   : kiln_diag_set(diag, status, NULL, "unpacking an entry", NULL);
    }
    if (entry->facts.length > 0) {
        memcpy(memory + padded, entry->facts.data, entry->facts.length);
    }
    if (entry->recipe.length > 0) {
        memcpy(memory + recipe_at, entry->recipe.data, entry->recipe.length);
    }
    status = kn_blob_adopt(memory, total, 0, size, entry->facts.length, out_blob, diag);
    if (status != KILN_OK) {
        free(memory);
        return status;
    }
    (*out_blob)->recipe = kn_span_of(memory + recipe_at, entry->recipe.length);
    return KILN_OK;
}

static void finish_blob(const kn_entry *entry, kiln_blob *blob)
{
    if (!(entry->flags & KN_ENTRY_ZSTD)) {
        blob->recipe = entry->recipe;
    }
    atomic_store_explicit(&blob->compile_ns, entry->compile_ns, memory_order_relaxed);
}

kiln_status kn_entry_load(void *memory, size_t memory_size, const kn_entry *entry,
                          kiln_blob **out_blob, kiln_diag *diag)
{
    *out_blob = NULL;
    kiln_status status;
    bool packed = (entry->flags & KN_ENTRY_ZSTD) != 0;
    if (packed) {
        status = unpack_entry(entry, out_blob, diag);
    } else {
        size_t offset = (size_t)(entry->payload.data - (const char *)memory);
        status = kn_blob_adopt(memory, memory_size, offset, entry->payload.length,
                               entry->facts.length, out_blob, diag);
    }
    if (status == KILN_OK) {
        finish_blob(entry, *out_blob);
    }
    if (packed || status != KILN_OK) {
        free(memory);
    }
    return status;
}

kiln_status kn_entry_load_in(void *memory, size_t memory_size, const kn_entry *entry,
                             kiln_blob **out_blob, kiln_diag *diag)
{
    if (entry->flags & KN_ENTRY_ZSTD) {
        return kn_entry_load(memory, memory_size, entry, out_blob, diag);
    }
    size_t offset = (size_t)(entry->payload.data - (const char *)memory);
    *out_blob =
        kn_blob_adopt_in(memory, memory_size, offset, entry->payload.length, entry->facts.length);
    finish_blob(entry, *out_blob);
    return KILN_OK;
}

/* Compresses the payload into a body of its own. False where it does not pay or no memory is left:
 * then the payload is stored as it is. */
static bool pack_payload(const kiln_blob *blob, kn_entry_parts *parts, size_t *out_stored)
{
    kn_span body = kn_blob_body(blob);
    size_t facts_room = (size_t)(body.data + body.length - blob->facts);
    size_t bound = ZSTD_compressBound(blob->size);
    size_t room = 0;
    if (ZSTD_isError(bound) || !kn_blob_padded(bound, &room) ||
        !kn_add_size(room, facts_room, &room)) {
        return false;
    }
    char *packed = malloc(room);
    if (packed == NULL) {
        return false;
    }
    size_t stored = ZSTD_compress(packed, bound, blob->data, blob->size, 1);
    if (ZSTD_isError(stored) || stored > blob->size - blob->size / 8) {
        free(packed);
        return false;
    }
    size_t padded = 0;
    (void)kn_blob_padded(stored, &padded);
    memset(packed + stored, 0, padded - stored);
    memcpy(packed + padded, blob->facts, facts_room);
    parts->packed = packed;
    parts->body = kn_span_of(packed, padded + facts_room);
    *out_stored = stored;
    return true;
}

kiln_status kn_entry_write(const kn_entry_request *request, kn_entry_parts *out_parts,
                           kiln_diag *diag)
{
    memset(out_parts, 0, sizeof *out_parts);
    const kiln_blob *blob = request->blob;
    kn_entry_parts parts = {.body = kn_blob_body(blob), .recipe = request->recipe};
    if (parts.body.length > KN_ENTRY_LIMIT - KN_ENTRY_HEADER ||
        parts.recipe.length > KN_ENTRY_LIMIT - KN_ENTRY_HEADER - parts.body.length) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, "storing an entry",
                             "it is larger than %zu MiB", KN_ENTRY_LIMIT >> 20);
    }
    size_t stored = blob->size;
    uint32_t flags = request->compress && pack_payload(blob, &parts, &stored) ? KN_ENTRY_ZSTD : 0;

    unsigned char *header = parts.header;
    memcpy(header, magic, sizeof magic);
    kn_put_u32(header + AT_VERSION, KN_ENTRY_VERSION);
    kn_put_u32(header + AT_FLAGS, flags);
    memcpy(header + AT_KEY, request->key->bytes, sizeof request->key->bytes);
    kn_put_u64(header + AT_COMPILE_NS, kiln_blob_compile_ns(blob));
    kn_put_u64(header + AT_CREATED_NS, (uint64_t)request->created_ns);
    kn_put_u64(header + AT_PAYLOAD_SIZE, blob->size);
    kn_put_u64(header + AT_STORED_SIZE, stored);
    kn_put_u64(header + AT_FACTS_SIZE, blob->facts_size);
    kn_put_u64(header + AT_RECIPE_SIZE, parts.recipe.length);
    const char *writer = request->writer != NULL ? request->writer : KILN_VERSION;
    size_t writer_length = strlen(writer);
    memcpy(header + AT_WRITER, writer, writer_length < WRITER_SIZE ? writer_length : WRITER_SIZE);

    const kn_span covered[] = {kn_span_of(header + AT_VERSION, KN_ENTRY_HEADER - AT_VERSION),
                               parts.body, parts.recipe};
    kn_checksum(covered, sizeof covered / sizeof *covered, header + AT_CHECKSUM);
    *out_parts = parts;
    return KILN_OK;
}

size_t kn_entry_parts_size(const kn_entry_parts *parts)
{
    return KN_ENTRY_HEADER + parts->body.length + parts->recipe.length;
}

void kn_entry_parts_deinit(kn_entry_parts *parts)
{
    free(parts->packed);
    memset(parts, 0, sizeof *parts);
}

kiln_status kn_entry_bytes(const kn_entry_request *request, size_t spare, void **out_data,
                           size_t *out_size, kiln_diag *diag)
{
    kn_entry_parts parts;
    *out_data = NULL;
    *out_size = 0;
    kiln_status status = kn_entry_write(request, &parts, diag);
    if (status != KILN_OK) {
        return status;
    }
    const size_t size = kn_entry_parts_size(&parts);
    char *data = malloc(size + spare);
    if (data != NULL) {
        memcpy(data, parts.header, KN_ENTRY_HEADER);
        memcpy(data + KN_ENTRY_HEADER, parts.body.data, parts.body.length);
        memcpy(data + KN_ENTRY_HEADER + parts.body.length, parts.recipe.data, parts.recipe.length);
        *out_data = data;
        *out_size = size;
    }
    kn_entry_parts_deinit(&parts);
    return data != NULL ? KILN_OK : kn_no_memory(diag, "writing an entry");
}
