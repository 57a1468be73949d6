/* y = scale_x * scale_w[row] * (W x): ternary weights, int8 activations, exact integer sums. One
 * thread a row of W; n, a multiple of four, is the length of a row. */
#include "cuda/grid.h"
#include "cuda/ternary.h"

extern "C" __global__ void ternary_matvec(const unsigned char *w, const signed char *x,
                                          const float *scale_w, float scale_x, float *y, int n)
{
    size_t row = GRID_ID(x);
    int bytes = n / TERNARY_PER_BYTE;
    const unsigned char *packed = w + row * (size_t)bytes;
    int sum = 0;
    for (int i = 0; i < bytes; i++) {
        sum += ternary_dot4(packed[i], x + TERNARY_PER_BYTE * i);
    }
    y[row] = scale_x * scale_w[row] * (float)sum;
}
