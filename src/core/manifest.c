/* See manifest.h and docs/formats.md. */
#include "core/manifest.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

/* The layout in bytes. */
#define HEAD_SIZE 64u
#define HEADER_SIZE 88u
#define ABSENT_SIZE 16u
#define NAMES_LIMIT ((size_t)64 << 20)

/* A time younger than this before the record may hide a later write: coarse clocks, NFS. */
#define YOUNG_NS ((int64_t)2000000000)
#define SECOND_NS ((int64_t)1000000000)

void kn_manifest_init(kn_manifest *manifest)
{
    *manifest = (kn_manifest){0};
    kn_strbuf_init(&manifest->names, NAMES_LIMIT);
}

void kn_manifest_deinit(kn_manifest *manifest)
{
    free(manifest->headers);
    free(manifest->absent);
    kn_strbuf_deinit(&manifest->names);
    kn_manifest_init(manifest);
}

static bool grow(void **rows, size_t count, size_t *capacity, size_t row_size)
{
    if (count < *capacity) {
        return true;
    }
    if (count >= KN_MANIFEST_MAX_ROWS) {
        return false;
    }
    size_t wanted = *capacity == 0 ? 16 : *capacity * 2;
    void *grown = realloc(*rows, wanted * row_size);
    if (grown == NULL) {
        return false;
    }
    *rows = grown;
    *capacity = wanted;
    return true;
}

bool kn_manifest_add_name(kn_manifest *manifest, kn_span name, uint32_t *out_offset)
{
    *out_offset = (uint32_t)manifest->names.length;
    kn_strbuf_append(&manifest->names, name.data, name.length);
    kn_strbuf_append_char(&manifest->names, '\0');
    return kn_strbuf_ok(&manifest->names);
}

bool kn_manifest_add_header(kn_manifest *manifest, const kn_manifest_header *header)
{
    void *rows = manifest->headers;
    if (!grow(&rows, manifest->header_count, &manifest->header_capacity, sizeof *header)) {
        return false;
    }
    manifest->headers = rows;
    manifest->headers[manifest->header_count++] = *header;
    return true;
}

bool kn_manifest_add_absent(kn_manifest *manifest, const kn_place *place)
{
    void *rows = manifest->absent;
    if (!grow(&rows, manifest->absent_count, &manifest->absent_capacity, sizeof *place)) {
        return false;
    }
    manifest->absent = rows;
    manifest->absent[manifest->absent_count++] = *place;
    return true;
}

/* --- bytes --------------------------------------------------------------------------------------
 */

static void put_place(unsigned char *row, const kn_place *place)
{
    kn_put_u32(row, (uint32_t)place->base);
    kn_put_u32(row + 4, place->index);
    kn_put_u32(row + 8, place->name);
    kn_put_u32(row + 12, place->name_length);
}

void kn_manifest_write(const kn_manifest *manifest, kn_strbuf *out)
{
    unsigned char head[HEAD_SIZE] = {0};
    kn_put_u32(head, KN_MANIFEST_VERSION);
    kn_put_u32(head + 4, (uint32_t)manifest->header_count);
    kn_put_u32(head + 8, (uint32_t)manifest->absent_count);
    kn_put_u32(head + 12, (uint32_t)manifest->names.length);
    kn_put_u64(head + 16, (uint64_t)manifest->recorded_ns);
    memcpy(head + 24, manifest->graph, sizeof manifest->graph);
    kn_strbuf_append(out, head, sizeof head);
    for (size_t i = 0; i < manifest->header_count; i++) {
        const kn_manifest_header *header = &manifest->headers[i];
        unsigned char row[HEADER_SIZE];
        put_place(row, &header->place);
        kn_put_u32(row + 16, header->written);
        kn_put_u32(row + 20, header->written_length);
        kn_put_u64(row + 24, header->stamp.size);
        kn_put_u64(row + 32, (uint64_t)header->stamp.mtime_ns);
        kn_put_u64(row + 40, (uint64_t)header->stamp.ctime_ns);
        kn_put_u64(row + 48, header->stamp.inode);
        memcpy(row + 56, header->digest, sizeof header->digest);
        kn_strbuf_append(out, row, sizeof row);
    }
    for (size_t i = 0; i < manifest->absent_count; i++) {
        unsigned char row[ABSENT_SIZE];
        put_place(row, &manifest->absent[i]);
        kn_strbuf_append(out, row, sizeof row);
    }
    kn_strbuf_append(out, kn_strbuf_text(&manifest->names), manifest->names.length);
}

/* A name must be non-empty text inside the pool, ended by a NUL there. */
static bool name_is_good(kn_span names, uint32_t offset, uint32_t length)
{
    return length > 0 && offset < names.length && length < names.length - offset &&
           names.data[offset + length] == '\0' && memchr(names.data + offset, 0, length) == NULL;
}

static bool get_place(const unsigned char *row, kn_span names, kn_place *out_place)
{
    uint32_t base = kn_get_u32(row);
    if (base >= KN_PLACE_BASES) {
        return false;
    }
    *out_place = (kn_place){(kn_place_base)base, kn_get_u32(row + 4), kn_get_u32(row + 8),
                            kn_get_u32(row + 12)};
    return name_is_good(names, out_place->name, out_place->name_length);
}

static bool get_header(const unsigned char *row, kn_span names, kn_manifest_header *out_header)
{
    if (!get_place(row, names, &out_header->place) || out_header->place.base == KN_PLACE_SHIPS) {
        return false;
    }
    out_header->written = kn_get_u32(row + 16);
    out_header->written_length = kn_get_u32(row + 20);
    out_header->stamp.size = kn_get_u64(row + 24);
    out_header->stamp.mtime_ns = (int64_t)kn_get_u64(row + 32);
    out_header->stamp.ctime_ns = (int64_t)kn_get_u64(row + 40);
    out_header->stamp.inode = kn_get_u64(row + 48);
    memcpy(out_header->digest, row + 56, sizeof out_header->digest);
    return name_is_good(names, out_header->written, out_header->written_length);
}

/* Reads the rows between the head and the pool, whose sizes have been found to fit. */
static kiln_status get_rows(kn_span bytes, kn_span names, size_t header_count, size_t absent_count,
                            kn_manifest *manifest)
{
    const unsigned char *row = (const unsigned char *)bytes.data + HEAD_SIZE;
    manifest->headers = calloc(header_count + 1, sizeof *manifest->headers);
    manifest->absent = calloc(absent_count + 1, sizeof *manifest->absent);
    if (manifest->headers == NULL || manifest->absent == NULL) {
        return KILN_E_NOMEM;
    }
    manifest->header_count = header_count;
    manifest->header_capacity = header_count + 1;
    manifest->absent_count = absent_count;
    manifest->absent_capacity = absent_count + 1;
    for (size_t i = 0; i < header_count; i++, row += HEADER_SIZE) {
        if (!get_header(row, names, &manifest->headers[i])) {
            return KILN_E_CORRUPT;
        }
    }
    for (size_t i = 0; i < absent_count; i++, row += ABSENT_SIZE) {
        if (!get_place(row, names, &manifest->absent[i])) {
            return KILN_E_CORRUPT;
        }
    }
    kn_strbuf_append(&manifest->names, names.data, names.length);
    return kn_strbuf_ok(&manifest->names) ? KILN_OK : KILN_E_NOMEM;
}

kiln_status kn_manifest_parse(kn_span bytes, kn_manifest *out_manifest)
{
    kn_manifest_init(out_manifest);
    const unsigned char *head = (const unsigned char *)bytes.data;
    if (bytes.length < HEAD_SIZE || kn_get_u32(head) != KN_MANIFEST_VERSION ||
        kn_get_u64(head + 56) != 0) {
        return KILN_E_CORRUPT;
    }
    size_t header_count = kn_get_u32(head + 4);
    size_t absent_count = kn_get_u32(head + 8);
    size_t names_size = kn_get_u32(head + 12);
    if (header_count > KN_MANIFEST_MAX_ROWS || absent_count > KN_MANIFEST_MAX_ROWS ||
        names_size > NAMES_LIMIT ||
        HEAD_SIZE + header_count * HEADER_SIZE + absent_count * ABSENT_SIZE + names_size !=
            bytes.length) {
        return KILN_E_CORRUPT;
    }
    out_manifest->recorded_ns = (int64_t)kn_get_u64(head + 16);
    memcpy(out_manifest->graph, head + 24, sizeof out_manifest->graph);
    kn_span names = kn_span_of(bytes.data + bytes.length - names_size, names_size);
    kiln_status status = get_rows(bytes, names, header_count, absent_count, out_manifest);
    if (status != KILN_OK) {
        kn_manifest_deinit(out_manifest);
    }
    return status;
}

/* Seconds 0 and 1 are what packagers set all files to; a young time may be that of another write in
 * the same tick of the clock; one in the future says nothing. */
static bool is_settled(int64_t time_ns, int64_t recorded_ns)
{
    return recorded_ns > YOUNG_NS && time_ns >= 2 * SECOND_NS && time_ns < recorded_ns - YOUNG_NS;
}

bool kn_stamp_holds(const kn_stamp *then, const kn_stamp *now, int64_t recorded_ns)
{
    return then->size == now->size && then->mtime_ns == now->mtime_ns &&
           then->ctime_ns == now->ctime_ns && then->inode == now->inode &&
           is_settled(now->mtime_ns, recorded_ns) &&
           (now->ctime_ns == 0 || is_settled(now->ctime_ns, recorded_ns));
}
