/* Whether the bytes of a CUBIN or a fat binary are all there. The driver gets no size and goes by
 * what the headers say: on a file that was cut off it reads past the end. Text (PTX) and whatever
 * else is the driver's to judge. */
#include <string.h>

#include "apis/cuda/backend/instance.h"
#include "base/checked.h"

#define FATBIN_MAGIC UINT32_C(0xba55ed50)
/* SHT_NOBITS; and from SHT_LOPROC on, some of NVIDIA's have no bytes either. */
#define SECTION_WITHOUT_BYTES 8u
#define SECTION_OF_PROCESSOR UINT32_C(0x70000000)

enum { ELF_HEADER = 64, PROGRAM_HEADER = 56, SECTION_HEADER = 64, FATBIN_HEADER = 16 };

static bool lies_within(uint64_t offset, uint64_t length, size_t size)
{
    return offset <= size && length <= size - offset;
}

/* ELF-64, little-endian, as in the System V ABI. */
static bool elf_is_whole(const unsigned char *bytes, size_t size)
{
    if (size < ELF_HEADER || bytes[4] != 2) {
        return false;
    }
    const uint64_t programs = kn_get_u64(bytes + 32);
    const uint64_t sections = kn_get_u64(bytes + 40);
    const uint64_t program_count = kn_get_u16(bytes + 56);
    const uint64_t section_count = kn_get_u16(bytes + 60);
    if (!lies_within(programs, program_count * PROGRAM_HEADER, size) ||
        !lies_within(sections, section_count * SECTION_HEADER, size)) {
        return false;
    }
    for (uint64_t i = 0; i < section_count; i++) {
        const unsigned char *section = bytes + sections + i * SECTION_HEADER;
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
