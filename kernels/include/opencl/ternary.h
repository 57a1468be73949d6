/* The table of 2-bit weight codes, four to a byte, the first in the lowest bits. It is written once
 * a language (include/c, include/opencl, include/cuda) and says the same in each: code 0 -> -1 code
 * 1 -> 0    code 2 -> +1    code 3 -> 0 (reserved: never written, reads as 0) */
#ifndef KERNELS_OPENCL_TERNARY_H
#define KERNELS_OPENCL_TERNARY_H

#define TERNARY_PER_BYTE 4

static inline int ternary_decode(uint code)
{
    return (int)(code == 2u) - (int)(code == 0u);
}

/* The dot product of four weights with four activations. */
static inline int ternary_dot4(uint packed, __global const char *x)
{
    return ternary_decode(packed & 3u) * x[0] + ternary_decode(packed >> 2 & 3u) * x[1] +
           ternary_decode(packed >> 4 & 3u) * x[2] + ternary_decode(packed >> 6 & 3u) * x[3];
}

#endif
