/* y[token][row] = scale_x[token] * scale_w[row] * (W x[token]): the same as ternary_matvec for many
 * tokens at once. One item a (row, token). */
#include <kiln_kernel.h>

#include "c/ternary.h"

KILN_KERNEL(ternary_matmul, KILN_IN(uint8_t, w), KILN_IN(int8_t, x), KILN_IN(float, scale_w),
            KILN_IN(float, scale_x), KILN_OUT(float, y), KILN_VALUE(int32_t, n))
{
    const size_t rows = KILN_GLOBAL_SIZE(0);
    const size_t bytes = (size_t)n / TERNARY_PER_BYTE;
    KILN_ITEMS_XY(row, token)
    {
        const uint8_t *packed = w + row * bytes;
        const int8_t *activations = x + token * (size_t)n;
        int sum = 0;
        for (size_t i = 0; i < bytes; i++) {
            sum += ternary_dot4(packed[i], activations + TERNARY_PER_BYTE * i);
        }
        y[token * rows + row] = scale_x[token] * scale_w[row] * (float)sum;
    }
}
