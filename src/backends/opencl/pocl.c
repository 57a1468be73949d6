/* The outside of PoCL 3.1's binary, as far as it must be known to hand one over safely: a header,
 * the files of the program, then one record a kernel, each behind its length.
 *
 *     8  "poclbin\0"       4  number of kernels      then, `entries` times:  8 length, that many
 *     8  device            8  flags                  then, for each kernel:  8 length of the whole
 *     4  version (9)       4  entries                                        record, itself
 * included 41  hash of the program, as text
 *
 * Other versions have other fields behind the flags. They are let through as they are: the cache's
 * own checksum has vouched for the bytes. */
#include <string.h>

#include "backends/opencl/opencl.h"
#include "base/checked.h"

#define POCL_MAGIC "poclbin"
#define KNOWN_VERSION 9u
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
    if (version != KNOWN_VERSION) {
        return true;
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
