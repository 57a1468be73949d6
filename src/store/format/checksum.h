/* XXH3-128, the checksum of everything kiln stores: finds damage, proves nothing about intent.
 *
 * kn_checksum_avx2 is in checksum_avx2.c and kn_checksum_avx512 in checksum_avx512.c, which have
 * build flags of their own. */
#ifndef KILN_STORE_CHECKSUM_H
#define KILN_STORE_CHECKSUM_H

#include <stddef.h>

#include "base/span.h"

#define KN_CHECKSUM_SIZE 16

/* Over the concatenation of `count` spans, in the canonical (big-endian) form of XXH3-128. */
void kn_checksum(const kn_span *parts, size_t count, unsigned char out[KN_CHECKSUM_SIZE]);

/* The same by one build of it, for kn_checksum and its test. The latter two are in builds for
 * x86-64 alone (KILN_CHECKSUM_X86), and must not be called where the processor lacks what their
 * names say. */
void kn_checksum_plain(const kn_span *parts, size_t count, unsigned char out[KN_CHECKSUM_SIZE]);
void kn_checksum_avx2(const kn_span *parts, size_t count, unsigned char out[KN_CHECKSUM_SIZE]);
void kn_checksum_avx512(const kn_span *parts, size_t count, unsigned char out[KN_CHECKSUM_SIZE]);

#endif
