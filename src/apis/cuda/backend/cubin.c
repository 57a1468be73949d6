/* See cubin.h. A CUBIN is an ELF file (64 bits, little-endian, EM_CUDA); a kernel's section
 * .nv.info.NAME is a list of attributes: format, kind, and a value or a length and that many bytes.
 */
#include "apis/cuda/backend/cubin.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/checked.h"

enum {
    MACHINE_CUDA = 190,
    HEADER_SIZE = 64,
    SECTION_SIZE = 64,
    FORMAT_SIZED = 4,        /* of an attribute: a length, then bytes */
    KIND_PARAM = 0x17,       /* index, ordinal, offset, size in the upper bits */
    KIND_PARAM_BYTES = 0x19, /* of all parameters together; in the place of the length */
    PARAM_SIZE = 12,
    PARAMS_MAX = 4096,
};

static kn_bytes section_at(kn_bytes file, uint64_t table, uint64_t index)
{
    return kn_bytes_part(file, table + index * SECTION_SIZE, SECTION_SIZE);
}

static kn_bytes contents_of(kn_bytes file, kn_bytes section)
{
    return section.size == 0
               ? section
               : kn_bytes_part(file, kn_get_u64(section.data + 24), kn_get_u64(section.data + 32));
}

static bool is_named(kn_bytes names, uint32_t at, const char *kernel)
{
    static const char prefix[] = ".nv.info.";
    const size_t before = sizeof(prefix) - 1;
    const size_t length = strlen(kernel) + 1;
    return at < names.size && names.size - at > before && names.size - at - before >= length &&
           memcmp(names.data + at, prefix, before) == 0 &&
           memcmp(names.data + at + before, kernel, length) == 0;
}

/* The kernel's section; of size 0 if there is none. */
static kn_bytes find_info(kn_bytes file, const char *kernel)
{
    static const unsigned char magic[] = {0x7f, 'E', 'L', 'F', 2, 1};
    const kn_bytes nothing = {file.data, 0};
    if (file.size < HEADER_SIZE || memcmp(file.data, magic, sizeof(magic)) != 0 ||
        kn_get_u16(file.data + 18) != MACHINE_CUDA || kn_get_u16(file.data + 58) != SECTION_SIZE) {
        return nothing;
    }
    const uint64_t table = kn_get_u64(file.data + 40);
    const uint32_t count = kn_get_u16(file.data + 60);
    const kn_bytes names = contents_of(file, section_at(file, table, kn_get_u16(file.data + 62)));
    for (uint32_t i = 0; i < count && table <= file.size; i++) {
        const kn_bytes section = section_at(file, table, i);
        if (section.size != 0 && is_named(names, kn_get_u32(section.data), kernel)) {
            return contents_of(file, section);
        }
    }
    return nothing;
}

/* What the attributes add up to. */
typedef struct tally {
    size_t count;
    uint32_t ordinals; /* their sum */
    uint32_t end;      /* of the parameter that lies last */
    uint32_t total;
} tally;

static void take_param(const unsigned char *param, tally *sum)
{
    const uint32_t end = kn_get_u16(param + 6) + (kn_get_u32(param + 8) >> 18);
    sum->count++;
    sum->ordinals += kn_get_u16(param + 4);
    sum->end = end > sum->end ? end : sum->end;
}

size_t kn_cubin_param_count(const void *image, size_t size, const char *kernel)
{
    const kn_bytes info = find_info((kn_bytes){(const unsigned char *)image, size}, kernel);
    tally sum = {0};
    size_t at = 0;
    while (at + 4 <= info.size && sum.count <= PARAMS_MAX) {
        const unsigned char *attribute = info.data + at;
        const uint32_t value = kn_get_u16(attribute + 2);
        const size_t length = attribute[0] == FORMAT_SIZED ? value : 0;
        at += 4;
        if (length > info.size - at) {
            return SIZE_MAX;
        }
        if (attribute[1] == KIND_PARAM) {
            if (length != PARAM_SIZE) {
                return SIZE_MAX;
            }
            take_param(attribute + 4, &sum);
        } else if (attribute[1] == KIND_PARAM_BYTES) {
            sum.total = value;
        }
        at += length;
    }
    /* One of each ordinal, and nothing after the last of them. */
    const bool agrees = info.size > 0 && at == info.size && sum.count <= PARAMS_MAX &&
                        sum.end == sum.total &&
                        sum.ordinals == sum.count * (sum.count - (sum.count > 0)) / 2;
    return agrees ? sum.count : SIZE_MAX;
}

/* --- whether all of it is there --------------------------------------------------------------- */

#define FATBIN_MAGIC UINT32_C(0xba55ed50)
/* SHT_NOBITS; and from SHT_LOPROC on, some of NVIDIA's have no bytes either. */
#define SECTION_WITHOUT_BYTES 8u
#define SECTION_OF_PROCESSOR UINT32_C(0x70000000)

enum { PROGRAM_HEADER = 56, FATBIN_HEADER = 16 };

static bool lies_within(uint64_t offset, uint64_t length, size_t size)
{
    return offset <= size && length <= size - offset;
}

/* ELF-64, little-endian, as in the System V ABI. */
static bool elf_is_whole(const unsigned char *bytes, size_t size)
{
    if (size < HEADER_SIZE || bytes[4] != 2) {
        return false;
    }
    const uint64_t programs = kn_get_u64(bytes + 32);
    const uint64_t sections = kn_get_u64(bytes + 40);
    const uint64_t program_count = kn_get_u16(bytes + 56);
    const uint64_t section_count = kn_get_u16(bytes + 60);
    if (!lies_within(programs, program_count * PROGRAM_HEADER, size) ||
        !lies_within(sections, section_count * SECTION_SIZE, size)) {
        return false;
    }
    for (uint64_t i = 0; i < section_count; i++) {
        const unsigned char *section = bytes + sections + i * SECTION_SIZE;
        const uint32_t type = kn_get_u32(section + 4);
        if (type != SECTION_WITHOUT_BYTES && type < SECTION_OF_PROCESSOR &&
            !lies_within(kn_get_u64(section + 24), kn_get_u64(section + 32), size)) {
            return false;
        }
    }
    return true;
}

bool kn_cuda_image_is_whole(const void *data, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)data;
    if (size >= 4 && memcmp(bytes, "\177ELF", 4) == 0) {
        return elf_is_whole(bytes, size);
    }
    if (size >= 4 && kn_get_u32(bytes) == FATBIN_MAGIC) {
        return size >= FATBIN_HEADER &&
               lies_within(kn_get_u16(bytes + 6), kn_get_u64(bytes + 8), size);
    }
    return true;
}
