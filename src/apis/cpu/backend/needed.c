/* Which libraries an ELF file names: its dynamic section, read by offset with bounds. This file
 * must not know compilers. */
#include <stdlib.h>
#include <string.h>

#include "apis/cpu/backend/object.h"
#include "base/checked.h"

enum {
    HEADER_SIZE = 64,
    SEGMENT_SIZE = 56,
    SEGMENT_LIMIT = 128,
    SEGMENT_LOAD = 1,
    SEGMENT_DYNAMIC = 2,
    ENTRY_SIZE = 16,
    DYNAMIC_LIMIT = 65536,
    TEXT_LIMIT = 1 << 20,
    TAG_NEEDED = 1,
    TAG_TEXT = 5,
    TAG_TEXT_SIZE = 10,
};

/* What makes the loader load more than is needed by name. */
static const uint64_t other_tags[] = {0x6ffffefb, 0x6ffffefc, 0x7ffffffd, 0x7fffffff};

typedef struct segments {
    unsigned char *table; /* malloc'ed */
    unsigned count;
} segments;

static bool read_segments(kn_file *file, segments *out)
{
    unsigned char header[HEADER_SIZE];
    *out = (segments){NULL, 0};
    if (kn_file_read_at(file, 0, header, sizeof(header)) != KILN_OK ||
        memcmp(header, "\177ELF\2\1", 6) != 0 || kn_get_u16(header + 54) != SEGMENT_SIZE) {
        return false;
    }
    out->count = kn_get_u16(header + 56);
    if (out->count == 0 || out->count > SEGMENT_LIMIT) {
        return false;
    }
    const size_t size = (size_t)out->count * SEGMENT_SIZE;
    out->table = (unsigned char *)malloc(size);
    return out->table != NULL &&
           kn_file_read_at(file, kn_get_u64(header + 32), out->table, size) == KILN_OK;
}

/* The bytes of [offset, offset + size), malloc'ed with a NUL after them; NULL: too many, or not
 * there. */
static unsigned char *read_part(kn_file *file, uint64_t offset, uint64_t size, size_t limit)
{
    unsigned char *part = size > 0 && size <= limit ? (unsigned char *)malloc(size + 1) : NULL;
    if (part != NULL && kn_file_read_at(file, offset, part, (size_t)size) != KILN_OK) {
        free(part);
        return NULL;
    }
    if (part != NULL) {
        part[size] = '\0';
    }
    return part;
}

/* Where in the file an address in memory comes from. */
static bool find_offset(const segments *s, uint64_t address, uint64_t *out_offset)
{
    for (unsigned i = 0; i < s->count; i++) {
        const unsigned char *segment = s->table + (size_t)i * SEGMENT_SIZE;
        const uint64_t start = kn_get_u64(segment + 16);
        if (kn_get_u32(segment) == SEGMENT_LOAD && address >= start &&
            address - start < kn_get_u64(segment + 32)) {
            *out_offset = kn_get_u64(segment + 8) + (address - start);
            return true;
        }
    }
    return false;
}

typedef struct dynamic {
    unsigned char *entries; /* malloc'ed */
    size_t count;
    uint64_t text, text_size;
} dynamic;

static bool is_other_tag(uint64_t tag)
{
    for (size_t i = 0; i < sizeof(other_tags) / sizeof(other_tags[0]); i++) {
        if (tag == other_tags[i]) {
            return true;
        }
    }
    return false;
}

static bool read_dynamic(kn_file *file, const segments *s, dynamic *out)
{
    *out = (dynamic){NULL, 0, 0, 0};
    for (unsigned i = 0; out->entries == NULL && i < s->count; i++) {
        const unsigned char *segment = s->table + (size_t)i * SEGMENT_SIZE;
        const uint64_t size = kn_get_u64(segment + 32);
        if (kn_get_u32(segment) == SEGMENT_DYNAMIC) {
            out->entries = read_part(file, kn_get_u64(segment + 8), size, DYNAMIC_LIMIT);
            out->count = (size_t)size / ENTRY_SIZE;
        }
    }
    for (size_t i = 0; out->entries != NULL && i < out->count; i++) {
        const uint64_t tag = kn_get_u64(out->entries + i * ENTRY_SIZE);
        const uint64_t value = kn_get_u64(out->entries + i * ENTRY_SIZE + 8);
        if (tag == 0) {
            out->count = i;
        } else if (tag == TAG_TEXT) {
            out->text = value;
        } else if (tag == TAG_TEXT_SIZE) {
            out->text_size = value;
        } else if (is_other_tag(tag)) {
            return false;
        }
    }
    return out->entries != NULL;
}

bool kn_cpu_object_each_needed(kn_file *file, cpu_needed_fn *take, void *user)
{
    segments s;
    dynamic d = {NULL, 0, 0, 0};
    unsigned char *text = NULL;
    uint64_t offset = 0;
    bool good =
        read_segments(file, &s) && read_dynamic(file, &s, &d) && find_offset(&s, d.text, &offset);
    if (good) {
        text = read_part(file, offset, d.text_size, TEXT_LIMIT);
        good = text != NULL;
    }
    for (size_t i = 0; good && i < d.count; i++) {
        const uint64_t name = kn_get_u64(d.entries + i * ENTRY_SIZE + 8);
        if (kn_get_u64(d.entries + i * ENTRY_SIZE) == TAG_NEEDED) {
            good = name < d.text_size && take(user, (const char *)text + name);
        }
    }
    free(text);
    free(d.entries);
    free(s.table);
    return good;
}
