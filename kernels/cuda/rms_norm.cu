/* y = x / sqrt(mean(x^2) + epsilon) * weight, per row of n. One block a row. */
#include "cuda/reduce.h"

extern "C" __global__ void __launch_bounds__(GROUP)
    rms_norm(const float *x, const float *weight, float *y, int n, float epsilon)
{
    __shared__ float scratch[GROUP];
    size_t row = blockIdx.x;
    int item = (int)threadIdx.x;
    const float *from = x + row * (size_t)n;
    float *to = y + row * (size_t)n;
    float sum = 0.0f;
    for (int i = item; i < n; i += GROUP) {
        sum += from[i] * from[i];
    }
    float factor = rsqrtf(reduce_sum(scratch, sum) / (float)n + epsilon);
    for (int i = item; i < n; i += GROUP) {
        to[i] = from[i] * factor * weight[i];
    }
}
