/* The table of 2-bit weight codes, four to a byte, the first in the lowest bits. It is written once
 * a language (include/c, include/opencl, include/cuda) and says the same in each: code 0 -> -1 code
 * 1 -> 0    code 2 -> +1    code 3 -> 0 (reserved: never written, reads as 0) */
#ifndef KERNELS_C_TERNARY_H
#define KERNELS_C_TERNARY_H

#include <stdint.h>

#define TERNARY_PER_BYTE 4

static inline int ternary_decode(unsigned code)
{
    return (code == 2U) - (code == 0U);
}

/* The dot product of four weights with four activations. */
static inline int ternary_dot4(unsigned packed, const int8_t *x)
{
    return ternary_decode(packed & 3U) * x[0] + ternary_decode(packed >> 2 & 3U) * x[1] +
           ternary_decode(packed >> 4 & 3U) * x[2] + ternary_decode(packed >> 6 & 3U) * x[3];
}

#endif
