/* y = scale_x * scale_w[row] * (W x): ternary weights, int8 activations, exact integer sums. One
 * item a row of W; n, a multiple of four, is the length of a row. */
#include <kiln_kernel.h>

#include "c/ternary.h"

KILN_KERNEL(ternary_matvec, KILN_IN(uint8_t, w), KILN_IN(int8_t, x), KILN_IN(float, scale_w),
            KILN_VALUE(float, scale_x), KILN_OUT(float, y), KILN_VALUE(int32_t, n))
{
    const size_t bytes = (size_t)n / TERNARY_PER_BYTE;
    KILN_ITEMS_X(row)
    {
        const uint8_t *packed = w + row * bytes;
        int sum = 0;
        for (size_t i = 0; i < bytes; i++) {
            sum += ternary_dot4(packed[i], x + TERNARY_PER_BYTE * i);
        }
        y[row] = scale_x * scale_w[row] * (float)sum;
    }
}
