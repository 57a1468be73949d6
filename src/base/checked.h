/* Size arithmetic that cannot wrap, reads and writes of little-endian numbers, parts of bytes, and
 * a status dropped on purpose. */
#ifndef KILN_BASE_CHECKED_H
#define KILN_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kiln/status.h"

/* For a status that does not matter: the reason stands next to the call. (A cast to void does not
 * quiet gcc's warn_unused_result.) */
static inline void kn_ignore(kiln_status status)
{
    (void)status;
}

/* Each stores the result and returns true, or returns false and stores nothing. */
static inline bool kn_add_size(size_t a, size_t b, size_t *out)
{
    if (a > SIZE_MAX - b) {
        return false;
    }
    *out = a + b;
    return true;
}

static inline bool kn_mul_size(size_t a, size_t b, size_t *out)
{
    if (b != 0 && a > SIZE_MAX / b) {
        return false;
    }
    *out = a * b;
    return true;
}

static inline void kn_put_u32(void *to, uint32_t value)
{
    unsigned char *p = (unsigned char *)to;
    for (int i = 0; i < 4; i++) {
        p[i] = (unsigned char)(value >> (8 * i));
    }
}

static inline void kn_put_u64(void *to, uint64_t value)
{
    unsigned char *p = (unsigned char *)to;
    for (int i = 0; i < 8; i++) {
        p[i] = (unsigned char)(value >> (8 * i));
    }
}

static inline uint16_t kn_get_u16(const void *from)
{
    const unsigned char *p = (const unsigned char *)from;
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t kn_get_u32(const void *from)
{
    const unsigned char *p = (const unsigned char *)from;
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t kn_get_u64(const void *from)
{
    const unsigned char *p = (const unsigned char *)from;
    return (uint64_t)kn_get_u32(p) | (uint64_t)kn_get_u32(p + 4) << 32;
}

/* Bytes that another object owns, which may be anything. */
typedef struct kn_bytes {
    const unsigned char *data;
    size_t size;
} kn_bytes;

/* A part of them; of size 0 if it is not wholly in them. */
static inline kn_bytes kn_bytes_part(kn_bytes of, uint64_t offset, uint64_t size)
{
    const bool inside = offset <= of.size && size <= of.size - offset;
    return inside ? (kn_bytes){of.data + offset, (size_t)size} : (kn_bytes){of.data, 0};
}

#endif
