/* See header_list.h and docs/reference/formats.md. */
#include "headers/header_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/map.h"

/* The layout in bytes. */
#define HEAD_SIZE 64u
#define NAMES_SEEN 1u
#define TWINS_SEEN 2u
#define HEADER_SIZE 112u
#define ABSENT_SIZE 24u
#define DIR_SIZE 16u
#define NAMES_LIMIT ((size_t)64 << 20)

/* A time younger than this before the record may hide a later write: coarse clocks, NFS. */
#define YOUNG_NS ((int64_t)2000000000)
#define SECOND_NS ((int64_t)1000000000)

void kn_header_list_init(kn_header_list *list)
{
    *list = (kn_header_list){0};
    kn_strbuf_init(&list->names, NAMES_LIMIT);
}

void kn_header_list_deinit(kn_header_list *list)
{
    free(list->headers);
    free(list->absent);
    free(list->dirs);
    kn_strbuf_deinit(&list->names);
    kn_header_list_init(list);
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

bool kn_header_list_add_name(kn_header_list *list, kn_span name, uint32_t *out_offset)
{
    *out_offset = (uint32_t)list->names.length;
    kn_strbuf_append(&list->names, name.data, name.length);
    kn_strbuf_append_char(&list->names, '\0');
    return kn_strbuf_ok(&list->names);
}

bool kn_header_list_add_header(kn_header_list *list, const kn_header_list_header *header)
{
    void *rows = list->headers;
    if (!grow_rows(&rows, list->header_count, &list->header_capacity, sizeof *header)) {
        return false;
    }
    list->headers = rows;
    list->headers[list->header_count++] = *header;
    return true;
}

bool kn_header_list_add_absent(kn_header_list *list, const kn_place *place)
{
    void *rows = list->absent;
    if (!grow_rows(&rows, list->absent_count, &list->absent_capacity, sizeof *place)) {
        return false;
    }
    list->absent = rows;
    list->absent[list->absent_count++] = *place;
    return true;
}

/* --- directories ------------------------------------------------------------------------------ */

/* Joins the rows of each directory: a row goes before those that came before it. */
static void link_rows(kn_header_list *list)
{
    for (size_t i = kn_header_list_places(list); i-- > 0;) {
        kn_place *place = kn_header_list_place(list, i);
        if (place->dir != 0) {
            kn_header_list_directory *dir = &list->dirs[place->dir - 1];
            const bool is_header = i < list->header_count;
            uint32_t *first = is_header ? &dir->first_header : &dir->first_absent;
            place->next = *first;
            *first = (uint32_t)(is_header ? i : i - list->header_count) + 1;
        }
    }
}

void kn_place_key_start(kn_strbuf *key, kn_place_base base, uint32_t index)
{
    unsigned char head[8];
    kn_put_u32(head, (uint32_t)base);
    kn_put_u32(head + 4, index);
    kn_strbuf_clear(key);
    kn_strbuf_append(key, head, sizeof head);
}

static void cut_text(kn_strbuf *text, size_t length)
{
    text->length = length;
    text->data[length] = '\0';
}

void kn_place_key_append_normal(kn_strbuf *key, const char *name)
{
    if (*name == '/') {
        kn_strbuf_append_char(key, '/');
    }
    size_t root = key->length;
    while (*name != '\0' && kn_strbuf_ok(key)) {
        size_t length = strcspn(name, "/");
        bool up = length == 2 && memcmp(name, "..", 2) == 0;
        const char *last = key->data + key->length;
        while (last > key->data + root && last[-1] != '/') {
            last--;
        }
        bool has_parent = key->length > root && strcmp(last, "..") != 0;
        if (up && has_parent) {
            size_t at = (size_t)(last - key->data);
            cut_text(key, at > root ? at - 1 : root);
        } else if (length > 0 && !(length == 1 && *name == '.')) {
            if (key->length > root) {
                kn_strbuf_append_char(key, '/');
            }
            kn_strbuf_append(key, name, length);
        }
        name += length;
        name += *name == '/';
    }
}

/* Gives a place its directory, by what is before the last "/" of its name. */
static bool put_in_dir(kn_header_list *list, kn_place *place, kn_map *known, kn_strbuf *key)
{
    const char *name = kn_header_list_name(list, place->name);
    uint32_t length = place->name_length;
    while (length > 0 && name[length - 1] != '/') {
        length--;
    }
    place->dir = place->next = 0;
    if (!kn_place_is_on_disk(place->base) || length == place->name_length) {
        return true;
    }
    kn_place_key_start(key, place->base, place->index);
    kn_strbuf_append(key, name, length);
    if (!kn_strbuf_ok(key)) {
        return false;
    }
    uintptr_t row = (uintptr_t)kn_map_find(known, key->data, key->length);
    if (row == 0) {
        void *rows = list->dirs;
        if (!grow_rows(&rows, list->dir_count, &list->dir_capacity, sizeof *list->dirs)) {
            return false;
        }
        list->dirs = rows;
        list->dirs[list->dir_count++] =
            (kn_header_list_directory){place->base, place->index, place->name, length, 0, 0};
        row = list->dir_count;
        if (!kn_map_put(known, key->data, key->length, (void *)row, NULL)) { /* a number */
            return false;
        }
    }
    place->dir = (uint32_t)row;
    return true;
}

bool kn_header_list_group(kn_header_list *list)
{
    kn_map known;
    kn_strbuf key;
    bool good = true;
    kn_map_init(&known);
    kn_strbuf_init(&key, 0);
    list->dir_count = 0;
    for (size_t i = 0; i < kn_header_list_places(list) && good; i++) {
        good = put_in_dir(list, kn_header_list_place(list, i), &known, &key);
    }
    if (good) {
        link_rows(list);
    } else {
        for (size_t i = 0; i < kn_header_list_places(list); i++) {
            kn_header_list_place(list, i)->dir = 0;
        }
        list->dir_count = 0;
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
    kn_put_u32(row + 16, place->dir);
    kn_put_u32(row + 20, 0);
}

/* Without stamps only the size is in it: no time and no number of a file of this machine. */
static void put_header(unsigned char *row, const kn_header_list_header *header, bool stamps)
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

void kn_header_list_write(const kn_header_list *list, bool stamps, kn_strbuf *out)
{
    unsigned char head[HEAD_SIZE] = {0};
    const kn_span names = list->pool.data != NULL
                              ? list->pool
                              : kn_span_of(kn_strbuf_text(&list->names), list->names.length);
    kn_put_u32(head, KN_MANIFEST_VERSION);
    kn_put_u32(head + 4, (uint32_t)list->header_count);
    kn_put_u32(head + 8, (uint32_t)list->absent_count);
    kn_put_u32(head + 12, (uint32_t)names.length);
    kn_put_u64(head + 16, stamps ? (uint64_t)list->recorded_ns : 0);
    memcpy(head + 24, list->graph, sizeof list->graph);
    kn_put_u32(head + 56, (uint32_t)list->dir_count);
    kn_put_u32(head + 60,
               (list->names_seen ? NAMES_SEEN : 0u) | (list->twins_seen ? TWINS_SEEN : 0u));
    kn_strbuf_append(out, head, sizeof head);
    for (size_t i = 0; i < list->header_count; i++) {
        unsigned char row[HEADER_SIZE];
        put_header(row, &list->headers[i], stamps);
        kn_strbuf_append(out, row, sizeof row);
    }
    for (size_t i = 0; i < list->absent_count; i++) {
        unsigned char row[ABSENT_SIZE];
        put_place(row, &list->absent[i]);
        kn_strbuf_append(out, row, sizeof row);
    }
    for (size_t i = 0; i < list->dir_count; i++) {
        const kn_header_list_directory *dir = &list->dirs[i];
        unsigned char row[DIR_SIZE];
        kn_put_u32(row, (uint32_t)dir->base);
        kn_put_u32(row + 4, dir->index);
        kn_put_u32(row + 8, dir->name);
        kn_put_u32(row + 12, dir->length);
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
static bool dir_is_good(const kn_header_list *list, const kn_place *place)
{
    if (place->dir == 0) {
        return true;
    }
    if (place->dir > list->dir_count) {
        return false;
    }
    const kn_header_list_directory *dir = &list->dirs[place->dir - 1];
    const char *name = list->pool.data + place->name;
    return dir->base == place->base && dir->index == place->index &&
           dir->length < place->name_length &&
           (dir->name == place->name ||
            memcmp(list->pool.data + dir->name, name, dir->length) == 0) &&
           memchr(name + dir->length, '/', place->name_length - dir->length) == NULL;
}

static bool get_place(const unsigned char *row, const kn_header_list *list, kn_place *out_place)
{
    uint32_t base = kn_get_u32(row);
    if (base >= KN_PLACE_BASES || kn_get_u32(row + 20) != 0) {
        return false;
    }
    *out_place = (kn_place){.base = (kn_place_base)base,
                            .index = kn_get_u32(row + 4),
                            .name = kn_get_u32(row + 8),
                            .name_length = kn_get_u32(row + 12),
                            .dir = kn_get_u32(row + 16)};
    return name_is_good(list->pool, out_place->name, out_place->name_length) &&
           dir_is_good(list, out_place);
}

static bool get_header(const unsigned char *row, const kn_header_list *list,
                       kn_header_list_header *out_header)
{
    if (!get_place(row, list, &out_header->place) || out_header->place.base == KN_PLACE_SHIPS) {
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
    return name_is_good(list->pool, out_header->written, out_header->written_length);
}

static bool get_dir(const unsigned char *row, kn_span names, kn_header_list_directory *out_dir)
{
    uint32_t base = kn_get_u32(row);
    *out_dir = (kn_header_list_directory){.base = (kn_place_base)base,
                                          .index = kn_get_u32(row + 4),
                                          .name = kn_get_u32(row + 8),
                                          .length = kn_get_u32(row + 12)};
    return base < KN_PLACE_BASES && kn_place_is_on_disk((kn_place_base)base) &&
           out_dir->name < names.length && out_dir->length < names.length - out_dir->name &&
           (out_dir->length == 0 ||
            (names.data[out_dir->name + out_dir->length - 1] == '/' &&
             memchr(names.data + out_dir->name, 0, out_dir->length) == NULL));
}

/* Reads the rows between the head and the pool, whose sizes have been found to fit. */
static kiln_status get_rows(kn_span bytes, kn_header_list *list)
{
    const unsigned char *row = (const unsigned char *)bytes.data + HEAD_SIZE;
    const unsigned char *dirs =
        row + list->header_capacity * HEADER_SIZE + list->absent_capacity * ABSENT_SIZE;
    list->headers = calloc(list->header_capacity + 1, sizeof *list->headers);
    list->absent = calloc(list->absent_capacity + 1, sizeof *list->absent);
    list->dirs = calloc(list->dir_capacity + 1, sizeof *list->dirs);
    if (list->headers == NULL || list->absent == NULL || list->dirs == NULL) {
        return KILN_E_NOMEM;
    }
    for (; list->dir_count < list->dir_capacity; dirs += DIR_SIZE) {
        if (!get_dir(dirs, list->pool, &list->dirs[list->dir_count++])) {
            return KILN_E_CORRUPT;
        }
    }
    for (; list->header_count < list->header_capacity; row += HEADER_SIZE) {
        if (!get_header(row, list, &list->headers[list->header_count++])) {
            return KILN_E_CORRUPT;
        }
    }
    for (; list->absent_count < list->absent_capacity; row += ABSENT_SIZE) {
        if (!get_place(row, list, &list->absent[list->absent_count++])) {
            return KILN_E_CORRUPT;
        }
    }
    link_rows(list);
    return KILN_OK;
}

kiln_status kn_header_list_parse(kn_span bytes, kn_header_list *out_list)
{
    kn_header_list_init(out_list);
    const unsigned char *head = (const unsigned char *)bytes.data;
    if (bytes.length < HEAD_SIZE || kn_get_u32(head) != KN_MANIFEST_VERSION ||
        kn_get_u32(head + 60) > (NAMES_SEEN | TWINS_SEEN)) {
        return KILN_E_CORRUPT;
    }
    size_t header_count = kn_get_u32(head + 4);
    size_t absent_count = kn_get_u32(head + 8);
    size_t names_size = kn_get_u32(head + 12);
    size_t dir_count = kn_get_u32(head + 56);
    if (header_count > KN_MANIFEST_MAX_ROWS || absent_count > KN_MANIFEST_MAX_ROWS ||
        dir_count > KN_MANIFEST_MAX_ROWS || names_size > NAMES_LIMIT ||
        HEAD_SIZE + header_count * HEADER_SIZE + absent_count * ABSENT_SIZE + dir_count * DIR_SIZE +
                names_size !=
            bytes.length) {
        return KILN_E_CORRUPT;
    }
    out_list->recorded_ns = (int64_t)kn_get_u64(head + 16);
    out_list->names_seen = (kn_get_u32(head + 60) & NAMES_SEEN) != 0;
    out_list->twins_seen = (kn_get_u32(head + 60) & TWINS_SEEN) != 0;
    memcpy(out_list->graph, head + 24, sizeof out_list->graph);
    out_list->pool = kn_span_of(bytes.data + bytes.length - names_size, names_size);
    out_list->header_capacity = header_count;
    out_list->absent_capacity = absent_count;
    out_list->dir_capacity = dir_count;
    kiln_status status = get_rows(bytes, out_list);
    if (status != KILN_OK) {
        kn_header_list_deinit(out_list);
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
