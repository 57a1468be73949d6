/* C = A B, row-major, without work-group memory. One item ROWS x WIDE elements of C, in registers;
 * all sizes are multiples of these. */
#include <kiln_kernel.h>

#ifndef ROWS
#define ROWS 4
#endif
#ifndef WIDE
#define WIDE 16
#endif

KILN_KERNEL(gemm, KILN_IN(float, a), KILN_IN(float, b), KILN_OUT(float, c), KILN_VALUE(int32_t, n),
            KILN_VALUE(int32_t, k))
{
    const size_t columns = (size_t)n;
    const size_t depth = (size_t)k;
    KILN_ITEMS_XY(strip, block)
    {
        const float *right = b + strip * WIDE;
        const float *left = a + block * ROWS * depth;
        float *to = c + block * ROWS * columns + strip * WIDE;
        float sum[ROWS][WIDE] = {{0.0F}};
        for (size_t i = 0; i < depth; i++) {
            for (size_t y = 0; y < ROWS; y++) {
                for (size_t x = 0; x < WIDE; x++) {
                    sum[y][x] += left[y * depth + i] * right[i * columns + x];
                }
            }
        }
        for (size_t y = 0; y < ROWS; y++) {
            for (size_t x = 0; x < WIDE; x++) {
                to[y * columns + x] = sum[y][x];
            }
        }
    }
}
