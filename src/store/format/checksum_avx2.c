/* XXH3-128 in vectors of 256 bits. Called only where the processor has them (checksum.c). */
#include "store/format/checksum_build.h"

void kn_checksum_avx2(const kn_span *parts, size_t count, unsigned char out[KN_CHECKSUM_SIZE])
{
    checksum_here(parts, count, out);
}
