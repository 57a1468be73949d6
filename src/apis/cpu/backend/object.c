/* A small reader of ELF files by offset. This file must not know compilers or devices. */
#include "apis/cpu/backend/object.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/text.h"
#include "sys/elf.h"

enum {
    HEADER_SIZE = 64,
    SEGMENT_SIZE = 56,
    SECTION_SIZE = 64,
    SYMBOL_SIZE = 24,
    TYPE_DYN = 3,
    MACHINE_X86_64 = 62,
    MACHINE_AARCH64 = 183,
    SEGMENT_LOAD = 1,
    SEGMENT_DYNAMIC = 2,
    SECTION_DYNSYM = 11,
};

/* The object is linked completely, so that a missing function is an error with a log and not a
 * refusal at load; and it is one page of code and data rather than four of padding, which is a
 * fifth of the size and two thirds of the load. */
const char *const kn_cpu_object_flags[] = {"-fPIC",
                                           "-shared",
                                           "-fvisibility=hidden",
                                           "-nostartfiles",
                                           "-pipe",
                                           "-Wl,--no-undefined",
                                           "-Wl,-z,now",
                                           "-Wl,-z,noexecstack",
                                           "-Wl,-z,noseparate-code",
                                           "-Wl,-z,norelro",
                                           NULL};

const bool kn_cpu_object_names_driver = true;

const char *kn_cpu_object_flag_for(const char *version)
{
    (void)version;
    return NULL;
}

/* The bytes [offset, offset + length) lie in `size`. */
static bool lies_within(uint64_t offset, uint64_t length, uint64_t size)
{
    return offset <= size && length <= size - offset;
}

static bool is_elf64(const unsigned char *header)
{
    return memcmp(header, "\177ELF", 4) == 0 && header[4] == 2 && header[5] == 1;
}

static bool segments_sound(const unsigned char *data, size_t size)
{
    const uint64_t table = kn_get_u64(data + 32);
    const unsigned count = kn_get_u16(data + 56);
    bool code = false;
    bool dynamic = false;
    if (kn_get_u16(data + 54) != SEGMENT_SIZE ||
        !lies_within(table, (uint64_t)count * SEGMENT_SIZE, size)) {
        return false;
    }
    for (unsigned i = 0; i < count; i++) {
        const unsigned char *segment = data + table + (size_t)i * SEGMENT_SIZE;
        const uint32_t type = kn_get_u32(segment);
        const uint64_t in_file = kn_get_u64(segment + 32);
        if (type != SEGMENT_LOAD && type != SEGMENT_DYNAMIC) {
            continue;
        }
        if (!lies_within(kn_get_u64(segment + 8), in_file, size) ||
            in_file > kn_get_u64(segment + 40)) {
            return false;
        }
        code = code || (type == SEGMENT_LOAD && (kn_get_u32(segment + 4) & 1u) != 0);
        dynamic = dynamic || type == SEGMENT_DYNAMIC;
    }
    return code && dynamic;
}

bool kn_cpu_object_check(const void *data, size_t size, kn_architecture architecture,
                         const char **out_why)
{
    const unsigned char *header = (const unsigned char *)data;
    const char *why = NULL;
    if (size == 0 || data == NULL) {
        why = "it is empty";
    } else if (size < HEADER_SIZE || !is_elf64(header)) {
        why = "it is not a 64-bit ELF file";
    } else if (kn_get_u16(header + 16) != TYPE_DYN) {
        why = "it is an ELF file, but not a shared object";
    } else if (kn_get_u16(header + 18) != (architecture == KN_ARCH_AARCH64
                                               ? (unsigned)MACHINE_AARCH64
                                               : (unsigned)MACHINE_X86_64)) {
        why = "it is for another machine";
    } else if (!segments_sound(header, size)) {
        why = "it is truncated or damaged";
    }
    *out_why = why;
    return why == NULL;
}

typedef struct symbols {
    const unsigned char *table;
    const char *text;
    size_t count, text_size;
} symbols;

static bool find_symbols(const unsigned char *data, size_t size, symbols *out)
{
    const uint64_t table = kn_get_u64(data + 40);
    const unsigned count = kn_get_u16(data + 60);
    if (kn_get_u16(data + 58) != SECTION_SIZE ||
        !lies_within(table, (uint64_t)count * SECTION_SIZE, size)) {
        return false;
    }
    for (unsigned i = 0; i < count; i++) {
        const unsigned char *section = data + table + (size_t)i * SECTION_SIZE;
        const uint32_t link = kn_get_u32(section + 40);
        if (kn_get_u32(section + 4) != SECTION_DYNSYM || link >= count) {
            continue;
        }
        const unsigned char *text = data + table + (size_t)link * SECTION_SIZE;
        const uint64_t offset = kn_get_u64(section + 24);
        const uint64_t length = kn_get_u64(section + 32);
        const uint64_t text_offset = kn_get_u64(text + 24);
        const uint64_t text_length = kn_get_u64(text + 32);
        if (!lies_within(offset, length, size) || !lies_within(text_offset, text_length, size) ||
            text_length == 0 || data[text_offset + text_length - 1] != '\0') {
            return false;
        }
        *out = (symbols){data + offset, (const char *)data + text_offset,
                         (size_t)length / SYMBOL_SIZE, (size_t)text_length};
        return true;
    }
    return false;
}

const char *kn_cpu_object_kernel(const void *data, size_t size, size_t index)
{
    const size_t prefix = strlen(CPU_KERNEL_PREFIX);
    symbols found;
    if (!find_symbols((const unsigned char *)data, size, &found)) {
        return NULL;
    }
    for (size_t i = 0; i < found.count; i++) {
        const unsigned char *symbol = found.table + i * SYMBOL_SIZE;
        const uint32_t name = kn_get_u32(symbol);
        if (name >= found.text_size || kn_get_u16(symbol + 6) == 0 ||
            strncmp(found.text + name, CPU_KERNEL_PREFIX, prefix) != 0) {
            continue;
        }
        if (index == 0) {
            return found.text + name + prefix;
        }
        index--;
    }
    return NULL;
}

bool kn_cpu_object_build_id(const char *path, char *id, size_t id_size, bool *out_dynamic)
{
    kn_elf_facts facts;
    *out_dynamic = kn_elf_inspect(path, &facts, NULL) == KILN_OK && facts.interpreted;
    kn_text_put(id, id_size, facts.build_id);
    return facts.build_id[0] != '\0';
}
