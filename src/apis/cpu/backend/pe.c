/* See pe.h. Offsets are those of Microsoft's "PE Format". */
#include "apis/cpu/backend/pe.h"

#include <string.h>

#include "base/checked.h"
#include "base/text.h"

enum {
    DOS_HEADER = 64,
    FILE_HEADER = 24, /* with the signature */
    OPTIONAL_HEADER = 112,
    DIRECTORY = 8,
    SECTION = 40,
    MAGIC_64 = 0x20b,
    EXPORT_TABLE = 40,
    IMPORT_ROW = 20,
};

static bool fits_within(uint64_t offset, uint64_t length, uint64_t size)
{
    return offset <= size && length <= size - offset;
}

static bool sections_sound(const kn_pe *pe)
{
    for (size_t i = 0; i < pe->section_count; i++) {
        const unsigned char *section = pe->sections + i * SECTION;
        if (!fits_within(kn_get_u32(section + 20), kn_get_u32(section + 16), pe->size)) {
            return false;
        }
    }
    return true;
}

bool kn_pe_read(kn_pe *pe, const void *data, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)data;
    *pe = (kn_pe){.data = bytes, .size = size};
    if (size < DOS_HEADER || memcmp(bytes, "MZ", 2) != 0) {
        return false;
    }
    const uint64_t start = kn_get_u32(bytes + 60);
    if (!fits_within(start, FILE_HEADER + OPTIONAL_HEADER, size) ||
        memcmp(bytes + start, "PE\0\0", 4) != 0) {
        return false;
    }
    const unsigned char *header = bytes + start;
    const unsigned char *optional = header + FILE_HEADER;
    const uint64_t optional_size = kn_get_u16(header + 20);
    const uint32_t directories = kn_get_u32(optional + 108);
    pe->machine = kn_get_u16(header + 4);
    pe->section_count = kn_get_u16(header + 6);
    pe->flags = kn_get_u16(header + 22);
    const uint64_t table = start + FILE_HEADER + optional_size;
    if (kn_get_u16(optional) != MAGIC_64 || optional_size < OPTIONAL_HEADER ||
        !fits_within(table, (uint64_t)pe->section_count * SECTION, size)) {
        return false;
    }
    for (uint32_t i = 0; i < 2 && i < directories; i++) {
        const size_t at = OPTIONAL_HEADER + (size_t)i * DIRECTORY;
        if (at + DIRECTORY <= optional_size) {
            pe->directories[i][0] = kn_get_u32(optional + at);
            pe->directories[i][1] = kn_get_u32(optional + at + 4);
        }
    }
    pe->sections = bytes + table;
    return sections_sound(pe);
}

/* The bytes from an address to the end of its section's in the file. */
static const unsigned char *find_bytes(const kn_pe *pe, uint32_t address, size_t *out_length)
{
    for (size_t i = 0; i < pe->section_count; i++) {
        const unsigned char *section = pe->sections + i * SECTION;
        const uint32_t first = kn_get_u32(section + 12);
        const uint32_t length = kn_get_u32(section + 16);
        if (address >= first && address - first < length) {
            *out_length = length - (address - first);
            return pe->data + kn_get_u32(section + 20) + (address - first);
        }
    }
    return NULL;
}

const unsigned char *kn_pe_at(const kn_pe *pe, uint32_t address, size_t length)
{
    size_t there = 0;
    const unsigned char *bytes = find_bytes(pe, address, &there);
    return bytes != NULL && length <= there ? bytes : NULL;
}

const char *kn_pe_text(const kn_pe *pe, uint32_t address)
{
    size_t there = 0;
    const unsigned char *bytes = find_bytes(pe, address, &there);
    return bytes != NULL && memchr(bytes, '\0', there) != NULL ? (const char *)bytes : NULL;
}

const char *kn_pe_export(const kn_pe *pe, uint32_t index)
{
    const uint32_t address = pe->directories[KN_PE_EXPORTS][0];
    const unsigned char *table = address != 0 ? kn_pe_at(pe, address, EXPORT_TABLE) : NULL;
    if (table == NULL || index >= kn_get_u32(table + 24) || index > UINT32_MAX / 8) {
        return NULL;
    }
    const uint64_t name = (uint64_t)kn_get_u32(table + 32) + (uint64_t)index * 4;
    const unsigned char *row = name <= UINT32_MAX ? kn_pe_at(pe, (uint32_t)name, 4) : NULL;
    return row != NULL ? kn_pe_text(pe, kn_get_u32(row)) : NULL;
}

const char *kn_pe_import(const kn_pe *pe, uint32_t index)
{
    const uint32_t address = pe->directories[KN_PE_IMPORTS][0];
    const uint64_t at = address + (uint64_t)index * IMPORT_ROW;
    const unsigned char *row =
        address != 0 && at <= UINT32_MAX ? kn_pe_at(pe, (uint32_t)at, IMPORT_ROW) : NULL;
    return row != NULL && kn_get_u32(row + 12) != 0 ? kn_pe_text(pe, kn_get_u32(row + 12)) : NULL;
}
