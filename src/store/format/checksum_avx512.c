/* XXH3-128 in vectors of 512 bits. Compiled for them, tuning included: the same loop without it
 * takes half as long again. Called only where the processor has them (checksum.c). */
#include "store/format/checksum_build.h"

void kn_checksum_avx512(const kn_span *parts, size_t count, unsigned char out[KN_CHECKSUM_SIZE])
{
    checksum_here(parts, count, out);
}
