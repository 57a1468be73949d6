/* See manifest.h and docs/formats.md. */
#include "headers/header_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/map.h"

/* The layout in bytes. */
#define HEAD_SIZE 64u
#define HEADER_SIZE 112u
#define ABSENT_SIZE 24u
#define FOLDER_SIZE 16u
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
    free(manifest->folders);
    kn_strbuf_deinit(&manifest->names);
    kn_manifest_init(manifest);
}

static bool grow_rows(void **rows, size_t count, size_t *capacity, size_t row_size)
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
    if (!grow_rows(&rows, manifest->header_count, &manifest->header_capacity, sizeof *header)) {
        return false;
    }
    manifest->headers = rows;
    manifest->headers[manifest->header_count++] = *header;
    return true;
}

bool kn_manifest_add_absent(kn_manifest *manifest, const kn_place *place)
{
    void *rows = manifest->absent;
    if (!grow_rows(&rows, manifest->absent_count, &manifest->absent_capacity, sizeof *place)) {
        return false;
    }
    manifest->absent = rows;
    manifest->absent[manifest->absent_count++] = *place;
    return true;
}

/* --- directories ------------------------------------------------------------------------------ */

/* Joins the rows of each directory: a row goes before those that came before it. */
static void link_rows(kn_manifest *manifest)
{
    for (size_t i = manifest->header_count; i > 0; i--) {
        kn_place *place = &manifest->headers[i - 1].place;
        if (place->folder != 0) {
            kn_manifest_folder *folder = &manifest->folders[place->folder - 1];
            place->next = folder->first_header;
            folder->first_header = (uint32_t)i;
        }
    }
    for (size_t i = manifest->absent_count; i > 0; i--) {
        kn_place *place = &manifest->absent[i - 1];
        if (place->folder != 0) {
            kn_manifest_folder *folder = &manifest->folders[place->folder - 1];
            place->next = folder->first_absent;
            folder->first_absent = (uint32_t)i;
        }
    }
}

static bool is_on_disk(kn_place_base base)
{
    return base != KN_PLACE_MEMORY && base != KN_PLACE_SHIPS;
}

/* Gives a place its directory, by what is before the last "/" of its name. */
static bool put_in_folder(kn_manifest *manifest, kn_place *place, kn_map *known, kn_strbuf *key)
{
    const char *name = kn_manifest_name(manifest, place->name);
    unsigned char head[8];
    uint32_t length = place->name_length;
    while (length > 0 && name[length - 1] != '/') {
        length--;
    }
    place->folder = place->next = 0;
    if (!is_on_disk(place->base) || length == place->name_length) {
        return true;
    }
    kn_put_u32(head, (uint32_t)place->base);
    kn_put_u32(head + 4, place->index);
    kn_strbuf_clear(key);
    kn_strbuf_append(key, head, sizeof head);
    kn_strbuf_append(key, name, length);
    if (!kn_strbuf_ok(key)) {
        return false;
    }
    uintptr_t row = (uintptr_t)kn_map_find(known, key->data, key->length);
    if (row == 0) {
        void *rows = manifest->folders;
        if (!grow_rows(&rows, manifest->folder_count, &manifest->folder_capacity,
                       sizeof *manifest->folders)) {
            return false;
        }
        manifest->folders = rows;
        manifest->folders[manifest->folder_count++] =
            (kn_manifest_folder){place->base, place->index, place->name, length, 0, 0};
        row = manifest->folder_count;
        if (!kn_map_put(known, key->data, key->length, (void *)row, NULL)) { /* a number */
            return false;
        }
    }
    place->folder = (uint32_t)row;
    return true;
}

bool kn_manifest_group(kn_manifest *manifest)
{
    kn_map known;
    kn_strbuf key;
    bool good = true;
    kn_map_init(&known);
    kn_strbuf_init(&key, 0);
    manifest->folder_count = 0;
    for (size_t i = 0; i < manifest->header_count && good; i++) {
        good = put_in_folder(manifest, &manifest->headers[i].place, &known, &key);
    }
    for (size_t i = 0; i < manifest->absent_count && good; i++) {
        good = put_in_folder(manifest, &manifest->absent[i], &known, &key);
    }
    if (good) {
        link_rows(manifest);
    } else {
        for (size_t i = 0; i < manifest->header_count; i++) {
            manifest->headers[i].place.folder = 0;
        }
        for (size_t i = 0; i < manifest->absent_count; i++) {
            manifest->absent[i].folder = 0;
        }
        manifest->folder_count = 0;
    }
    kn_strbuf_deinit(&key);
    kn_map_deinit(&known);
    return good;
}

/* --- bytes ------------------------------------------------------------------------------------ */

static void put_place(unsigned char *row, const kn_place *place)
{
    kn_put_u32(row, (uint32_t)place->base);
    kn_put_u32(row + 4, place->index);
    kn_put_u32(row + 8, place->name);
    kn_put_u32(row + 12, place->name_length);
    kn_put_u32(row + 16, place->folder);
    kn_put_u32(row + 20, 0);
}

/* Without stamps only the size is in it: no time and no number of a file of this machine. */
static void put_header(unsigned char *row, const kn_manifest_header *header, bool stamps)
{
    const kn_stamp none = {.size = header->stamp.size};
    const kn_stamp *stamp = stamps ? &header->stamp : &none;
    put_place(row, &header->place);
    kn_put_u32(row + 24, header->written);
    kn_put_u32(row + 28, header->written_length);
    kn_put_u64(row + 32, stamp->size);
    kn_put_u64(row + 40, (uint64_t)stamp->mtime_ns);
    kn_put_u64(row + 48, (uint64_t)stamp->ctime_ns);
    kn_put_u64(row + 56, stamp->inode);
    kn_put_u64(row + 64, stamp->device);
    kn_put_u32(row + 72, stamp->owner);
    kn_put_u32(row + 76, stamp->mode);
    memcpy(row + 80, header->digest, sizeof header->digest);
}

void kn_manifest_write(const kn_manifest *manifest, bool stamps, kn_strbuf *out)
{
    unsigned char head[HEAD_SIZE] = {0};
    const kn_span names = manifest->pool.data != NULL ? manifest->pool
                                                      : kn_span_of(kn_strbuf_text(&manifest->names),
                                                                   manifest->names.length);
    kn_put_u32(head, KN_MANIFEST_VERSION);
    kn_put_u32(head + 4, (uint32_t)manifest->header_count);
    kn_put_u32(head + 8, (uint32_t)manifest->absent_count);
    kn_put_u32(head + 12, (uint32_t)names.length);
    kn_put_u64(head + 16, stamps ? (uint64_t)manifest->recorded_ns : 0);
    memcpy(head + 24, manifest->graph, sizeof manifest->graph);
    kn_put_u32(head + 56, (uint32_t)manifest->folder_count);
    kn_put_u32(head + 60, manifest->names_seen ? 1 : 0);
    kn_strbuf_append(out, head, sizeof head);
    for (size_t i = 0; i < manifest->header_count; i++) {
        unsigned char row[HEADER_SIZE];
        put_header(row, &manifest->headers[i], stamps);
        kn_strbuf_append(out, row, sizeof row);
    }
    for (size_t i = 0; i < manifest->absent_count; i++) {
        unsigned char row[ABSENT_SIZE];
        put_place(row, &manifest->absent[i]);
        kn_strbuf_append(out, row, sizeof row);
    }
    for (size_t i = 0; i < manifest->folder_count; i++) {
        const kn_manifest_folder *folder = &manifest->folders[i];
        unsigned char row[FOLDER_SIZE];
        kn_put_u32(row, (uint32_t)folder->base);
        kn_put_u32(row + 4, folder->index);
        kn_put_u32(row + 8, folder->name);
        kn_put_u32(row + 12, folder->length);
        kn_strbuf_append(out, row, sizeof row);
    }
    kn_strbuf_append(out, names.data, names.length);
}

/* A name must be non-empty text inside the pool, ended by a NUL there. */
static bool name_is_good(kn_span names, uint32_t offset, uint32_t length)
{
    return length > 0 && offset < names.length && length < names.length - offset &&
           names.data[offset + length] == '\0' && memchr(names.data + offset, 0, length) == NULL;
}

/* Whether a place lies in its directory: what is before the last "/" is the directory's name. */
static bool folder_is_good(const kn_manifest *manifest, const kn_place *place)
{
    if (place->folder == 0) {
        return true;
    }
    if (place->folder > manifest->folder_count) {
        return false;
    }
    const kn_manifest_folder *folder = &manifest->folders[place->folder - 1];
    const char *name = manifest->pool.data + place->name;
    return folder->base == place->base && folder->index == place->index &&
           folder->length < place->name_length &&
           (folder->name == place->name ||
            memcmp(manifest->pool.data + folder->name, name, folder->length) == 0) &&
           memchr(name + folder->length, '/', place->name_length - folder->length) == NULL;
}

static bool get_place(const unsigned char *row, const kn_manifest *manifest, kn_place *out_place)
{
    uint32_t base = kn_get_u32(row);
    if (base >= KN_PLACE_BASES || kn_get_u32(row + 20) != 0) {
        return false;
    }
    *out_place = (kn_place){.base = (kn_place_base)base,
                            .index = kn_get_u32(row + 4),
                            .name = kn_get_u32(row + 8),
                            .name_length = kn_get_u32(row + 12),
                            .folder = kn_get_u32(row + 16)};
    return name_is_good(manifest->pool, out_place->name, out_place->name_length) &&
           folder_is_good(manifest, out_place);
}

static bool get_header(const unsigned char *row, const kn_manifest *manifest,
                       kn_manifest_header *out_header)
{
    if (!get_place(row, manifest, &out_header->place) || out_header->place.base == KN_PLACE_SHIPS) {
        return false;
    }
    out_header->written = kn_get_u32(row + 24);
    out_header->written_length = kn_get_u32(row + 28);
    out_header->stamp.size = kn_get_u64(row + 32);
    out_header->stamp.mtime_ns = (int64_t)kn_get_u64(row + 40);
    out_header->stamp.ctime_ns = (int64_t)kn_get_u64(row + 48);
    out_header->stamp.inode = kn_get_u64(row + 56);
    out_header->stamp.device = kn_get_u64(row + 64);
    out_header->stamp.owner = kn_get_u32(row + 72);
    out_header->stamp.mode = kn_get_u32(row + 76);
    memcpy(out_header->digest, row + 80, sizeof out_header->digest);
    return name_is_good(manifest->pool, out_header->written, out_header->written_length);
}

static bool get_folder(const unsigned char *row, kn_span names, kn_manifest_folder *out_folder)
{
    uint32_t base = kn_get_u32(row);
    *out_folder = (kn_manifest_folder){.base = (kn_place_base)base,
                                       .index = kn_get_u32(row + 4),
                                       .name = kn_get_u32(row + 8),
                                       .length = kn_get_u32(row + 12)};
    return base < KN_PLACE_BASES && is_on_disk((kn_place_base)base) &&
           out_folder->name < names.length &&
           out_folder->length < names.length - out_folder->name &&
           (out_folder->length == 0 ||
            (names.data[out_folder->name + out_folder->length - 1] == '/' &&
             memchr(names.data + out_folder->name, 0, out_folder->length) == NULL));
}

/* Reads the rows between the head and the pool, whose sizes have been found to fit. */
static kiln_status get_rows(kn_span bytes, kn_manifest *manifest)
{
    const unsigned char *row = (const unsigned char *)bytes.data + HEAD_SIZE;
    const unsigned char *folders =
        row + manifest->header_capacity * HEADER_SIZE + manifest->absent_capacity * ABSENT_SIZE;
    manifest->headers = calloc(manifest->header_capacity + 1, sizeof *manifest->headers);
    manifest->absent = calloc(manifest->absent_capacity + 1, sizeof *manifest->absent);
    manifest->folders = calloc(manifest->folder_capacity + 1, sizeof *manifest->folders);
    if (manifest->headers == NULL || manifest->absent == NULL || manifest->folders == NULL) {
        return KILN_E_NOMEM;
    }
    for (; manifest->folder_count < manifest->folder_capacity; folders += FOLDER_SIZE) {
        if (!get_folder(folders, manifest->pool, &manifest->folders[manifest->folder_count++])) {
            return KILN_E_CORRUPT;
        }
    }
    for (; manifest->header_count < manifest->header_capacity; row += HEADER_SIZE) {
        if (!get_header(row, manifest, &manifest->headers[manifest->header_count++])) {
            return KILN_E_CORRUPT;
        }
    }
    for (; manifest->absent_count < manifest->absent_capacity; row += ABSENT_SIZE) {
        if (!get_place(row, manifest, &manifest->absent[manifest->absent_count++])) {
            return KILN_E_CORRUPT;
        }
    }
    link_rows(manifest);
    return KILN_OK;
}

kiln_status kn_manifest_parse(kn_span bytes, kn_manifest *out_manifest)
{
    kn_manifest_init(out_manifest);
    const unsigned char *head = (const unsigned char *)bytes.data;
    if (bytes.length < HEAD_SIZE || kn_get_u32(head) != KN_MANIFEST_VERSION ||
        kn_get_u32(head + 60) > 1) {
        return KILN_E_CORRUPT;
    }
    size_t header_count = kn_get_u32(head + 4);
    size_t absent_count = kn_get_u32(head + 8);
    size_t names_size = kn_get_u32(head + 12);
    size_t folder_count = kn_get_u32(head + 56);
    if (header_count > KN_MANIFEST_MAX_ROWS || absent_count > KN_MANIFEST_MAX_ROWS ||
        folder_count > KN_MANIFEST_MAX_ROWS || names_size > NAMES_LIMIT ||
        HEAD_SIZE + header_count * HEADER_SIZE + absent_count * ABSENT_SIZE +
                folder_count * FOLDER_SIZE + names_size !=
            bytes.length) {
        return KILN_E_CORRUPT;
    }
    out_manifest->recorded_ns = (int64_t)kn_get_u64(head + 16);
    out_manifest->names_seen = kn_get_u32(head + 60) == 1;
    memcpy(out_manifest->graph, head + 24, sizeof out_manifest->graph);
    out_manifest->pool = kn_span_of(bytes.data + bytes.length - names_size, names_size);
    out_manifest->header_capacity = header_count;
    out_manifest->absent_capacity = absent_count;
    out_manifest->folder_capacity = folder_count;
    kiln_status status = get_rows(bytes, out_manifest);
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

kn_stamp kn_stamp_of(const kn_file_facts *facts)
{
    return (kn_stamp){.size = facts->size,
                      .mtime_ns = facts->mtime_ns,
                      .ctime_ns = facts->ctime_ns,
                      .inode = facts->inode,
                      .device = facts->device,
                      .owner = facts->owner,
                      .mode = facts->mode};
}

bool kn_stamp_holds(const kn_stamp *then, const kn_stamp *now, int64_t recorded_ns)
{
    return then->size == now->size && then->mtime_ns == now->mtime_ns &&
           then->ctime_ns == now->ctime_ns && then->inode == now->inode &&
           then->device == now->device && then->owner == now->owner && then->mode == now->mode &&
           is_settled(now->mtime_ns, recorded_ns) &&
           (now->ctime_ns == 0 || is_settled(now->ctime_ns, recorded_ns));
}
