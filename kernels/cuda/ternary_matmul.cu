/* y[token][row] = scale_x[token] * scale_w[row] * (W x[token]): the same as ternary_matvec for many
 * tokens at once. One thread a (row, token). */
#include "cuda/grid.h"
#include "cuda/ternary.h"

extern "C" __global__ void ternary_matmul(const unsigned char *w, const signed char *x,
                                          const float *scale_w, const float *scale_x, float *y,
                                          int n)
{
    size_t row = GRID_ID(x);
    size_t token = GRID_ID(y);
    size_t rows = GRID_SIZE(x);
    int bytes = n / TERNARY_PER_BYTE;
    const unsigned char *packed = w + row * (size_t)bytes;
    const signed char *activations = x + token * (size_t)n;
    int sum = 0;
    for (int i = 0; i < bytes; i++) {
        sum += ternary_dot4(packed[i], activations + TERNARY_PER_BYTE * i);
    }
    y[token * rows + row] = scale_x[token] * scale_w[row] * (float)sum;
}
