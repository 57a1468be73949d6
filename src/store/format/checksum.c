/* XXH3-128 by the build for the widest vectors that the processor has: the plain one, which is SSE2
 * on x86-64, takes three times as long as the processor needs. */
#include "store/format/checksum.h"

#include "store/format/checksum_build.h"
#include "sys/processor.h"

void kn_checksum_plain(const kn_span *parts, size_t count, unsigned char out[KN_CHECKSUM_SIZE])
{
    checksum_here(parts, count, out);
}

void kn_checksum(const kn_span *parts, size_t count, unsigned char out[KN_CHECKSUM_SIZE])
{
#ifdef KILN_CHECKSUM_X86
    switch (kn_processor_vectors()) {
    case KN_VECTORS_512:
        kn_checksum_avx512(parts, count, out);
        return;
    case KN_VECTORS_256:
        kn_checksum_avx2(parts, count, out);
        return;
    case KN_VECTORS_PLAIN:
        break;
    }
#endif
    kn_checksum_plain(parts, count, out);
}
