/* The outside of PoCL's binary, as far as it must be known to hand one over safely: a header, the
 * files of the program, then one record a kernel, each behind its length.
 *
 *     8  "poclbin\0"       8  flags                  then, `entries` times:  8 length, that many
 *     8  device            4  entries                then, for each kernel:  8 length of the whole
 *     4  version          41  hash, as text                                  record, itself
 * included 4  kernels           8  only if flags & 2
 *
 * That is versions 9 to 11, PoCL 3.1 to 7.1. Others are let through as they are: the cache's own
 * checksum has vouched for the bytes. */
#include <string.h>

#include "backends/opencl/opencl.h"
#include "base/checked.h"

#define POCL_MAGIC "poclbin"
#define FIRST_VERSION 9u
#define LAST_VERSION 11u
#define HAS_PROGRAM_VARIABLES 2u
#define RECORD_MINIMUM 36u

/* Steps over `length` bytes from *at. */
static bool skip(size_t *at, size_t size, uint64_t length)
{
    if (length > size - *at) {
        return false;
    }
    *at += (size_t)length;
    return true;
}

bool kn_pocl_binary_is_sound(const void *data, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)data;
    if (size < KN_POCL_HEADER || memcmp(bytes, POCL_MAGIC, sizeof(POCL_MAGIC)) != 0) {
        return false;
    }
    uint32_t version = kn_get_u32(bytes + 16);
    uint32_t kernels = kn_get_u32(bytes + 20);
    uint32_t entries = kn_get_u32(bytes + 32);
    size_t at = KN_POCL_HEADER;
    if (version < FIRST_VERSION || version > LAST_VERSION) {
        return true;
    }
    if ((kn_get_u64(bytes + 24) & HAS_PROGRAM_VARIABLES) != 0 && !skip(&at, size, 8)) {
        return false;
    }
    for (uint32_t i = 0; i < entries; i++) {
        if (size - at < 8 || !skip(&at, size - 8, kn_get_u64(bytes + at))) {
            return false;
        }
        at += 8;
    }
    for (uint32_t i = 0; i < kernels; i++) {
        uint64_t record = size - at >= 8 ? kn_get_u64(bytes + at) : 0;
        if (record < RECORD_MINIMUM || !skip(&at, size, record)) {
            return false;
        }
    }
    return at == size;
}
