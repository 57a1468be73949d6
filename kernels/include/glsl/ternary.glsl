/* The table of 2-bit weight codes, sixteen to a word, the first in the lowest bits. It is written
 * once a language (include/c, include/opencl, include/cuda, include/glsl) and says the same in
 * each: code 0 -> -1, code 1 -> 0, code 2 -> +1, code 3 -> 0 (reserved: never written, reads as 0).
 * Signed bytes come four to a word, so that no 8-bit feature of the device is needed. */
#ifndef KERNELS_GLSL_TERNARY
#define KERNELS_GLSL_TERNARY

#define TERNARY_PER_WORD 16u

int ternary_decode(uint code)
{
    return int(code == 2u) - int(code == 0u);
}

/* The dot product of the four weights in the low byte of `codes` with the four bytes of `x`. */
int ternary_dot4(uint codes, uint x)
{
    int sum = 0;
    for (int i = 0; i < 4; i++) {
        sum += ternary_decode(codes >> (2 * i) & 3u) * bitfieldExtract(int(x), 8 * i, 8);
    }
    return sum;
}

#endif
