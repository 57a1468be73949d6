/* y = scale_x * scale_w[row] * (W x): ternary weights, int8 activations, exact integer sums. One
 * item a row of W; n, a multiple of four, is the length of a row. */
#include "opencl/ternary.h"

__kernel void ternary_matvec(__global const uchar *w, __global const char *x,
                             __global const float *scale_w, float scale_x, __global float *y, int n)
{
    size_t row = get_global_id(0);
    int bytes = n / TERNARY_PER_BYTE;
    __global const uchar *packed = w + row * (size_t)bytes;
    int sum = 0;
    for (int i = 0; i < bytes; i++) {
        sum += ternary_dot4(packed[i], x + TERNARY_PER_BYTE * i);
    }
    y[row] = scale_x * scale_w[row] * (float)sum;
}
