/* Per row of n: scale = max|x| / 127 and q = round(x / scale), int8. One work-group a row. A row of
 * zeros has scale 0 and zeros. */
#include "opencl/reduce.h"

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
quantise_absmax(__global const float *x, __global char *q, __global float *scale, int n)
{
    __local float scratch[GROUP];
    size_t row = get_group_id(0);
    int item = (int)get_local_id(0);
    __global const float *from = x + row * (size_t)n;
    __global char *to = q + row * (size_t)n;
    float largest = 0.0f;
    for (int i = item; i < n; i += GROUP) {
        largest = fmax(largest, fabs(from[i]));
    }
    largest = reduce_max(scratch, largest);
    float inverse = largest > 0.0f ? 127.0f / largest : 0.0f;
    for (int i = item; i < n; i += GROUP) {
        to[i] = (char)clamp(rint(from[i] * inverse), -127.0f, 127.0f);
    }
    if (item == 0) {
        scale[row] = largest / 127.0f;
    }
}
