/* y = exp(x - max) / sum(exp(x - max)), per row of n. One work-group a row. */
#include "opencl/reduce.h"

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void softmax(__global const float *x,
                                                                         __global float *y, int n)
{
    __local float scratch[GROUP];
    size_t row = get_group_id(0);
    int item = (int)get_local_id(0);
    __global const float *from = x + row * (size_t)n;
    __global float *to = y + row * (size_t)n;
    float largest = -INFINITY;
    for (int i = item; i < n; i += GROUP) {
        largest = fmax(largest, from[i]);
    }
    largest = reduce_max(scratch, largest);
    float sum = 0.0f;
    for (int i = item; i < n; i += GROUP) {
        float e = exp(from[i] - largest);
        to[i] = e;
        sum += e;
    }
    float factor = 1.0f / reduce_sum(scratch, sum);
    for (int i = item; i < n; i += GROUP) {
        to[i] *= factor;
    }
}
