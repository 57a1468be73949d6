/* XXH3-128, the checksum of everything kiln stores: finds damage, proves nothing about intent.
 *
 * kn_checksum_avx512 is in checksum_avx512.c, which has build flags of its own. */
#ifndef KILN_STORE_CHECKSUM_H
#define KILN_STORE_CHECKSUM_H

#include <stddef.h>

#include "base/span.h"

#define KN_CHECKSUM_SIZE 16

/* Over the concatenation of `count` spans, in the canonical (big-endian) form of XXH3-128. */
void kn_checksum(const kn_span *parts, size_t count, unsigned char out[KN_CHECKSUM_SIZE]);

/* The same for one span, on a processor with AVX-512; only in builds for x86-64. */
void kn_checksum_avx512(const void *data, size_t size, unsigned char out[KN_CHECKSUM_SIZE]);

#endif
