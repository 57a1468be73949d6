/* y = x / sqrt(mean(x^2) + epsilon) * weight, per row of n. One work-group a row. */
#include "opencl/reduce.h"

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void
rms_norm(__global const float *x, __global const float *weight, __global float *y, int n,
         float epsilon)
{
    __local float scratch[GROUP];
    size_t row = get_group_id(0);
    int item = (int)get_local_id(0);
    __global const float *from = x + row * (size_t)n;
    __global float *to = y + row * (size_t)n;
    float sum = 0.0f;
    for (int i = item; i < n; i += GROUP) {
        sum += from[i] * from[i];
    }
    float factor = rsqrt(reduce_sum(scratch, sum) / (float)n + epsilon);
    for (int i = item; i < n; i += GROUP) {
        to[i] = from[i] * factor * weight[i];
    }
}
