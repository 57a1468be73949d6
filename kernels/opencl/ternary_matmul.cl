/* y[token][row] = scale_x[token] * scale_w[row] * (W x[token]): the same as ternary_matvec for many
 * tokens at once. One item a (row, token). */
#include "opencl/ternary.h"

__kernel void ternary_matmul(__global const uchar *w, __global const char *x,
                             __global const float *scale_w, __global const float *scale_x,
                             __global float *y, int n)
{
    size_t row = get_global_id(0);
    size_t token = get_global_id(1);
    size_t rows = get_global_size(0);
    int bytes = n / TERNARY_PER_BYTE;
    __global const uchar *packed = w + row * (size_t)bytes;
    __global const char *activations = x + token * (size_t)n;
    int sum = 0;
    for (int i = 0; i < bytes; i++) {
        sum += ternary_dot4(packed[i], activations + TERNARY_PER_BYTE * i);
    }
    y[token * rows + row] = scale_x[token] * scale_w[row] * (float)sum;
}
