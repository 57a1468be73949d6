/* y = exp(x - max) / sum(exp(x - max)), per row of n. One block a row. */
#include "cuda/reduce.h"

extern "C" __global__ void __launch_bounds__(GROUP) softmax(const float *x, float *y, int n)
{
    __shared__ float scratch[GROUP];
    size_t row = blockIdx.x;
    int item = (int)threadIdx.x;
    const float *from = x + row * (size_t)n;
    float *to = y + row * (size_t)n;
    float largest = -__int_as_float(0x7f800000);
    for (int i = item; i < n; i += GROUP) {
        largest = fmaxf(largest, from[i]);
    }
    largest = reduce_max(scratch, largest);
    float sum = 0.0f;
    for (int i = item; i < n; i += GROUP) {
        float e = expf(from[i] - largest);
        to[i] = e;
        sum += e;
    }
    float factor = 1.0f / reduce_sum(scratch, sum);
    for (int i = item; i < n; i += GROUP) {
        to[i] *= factor;
    }
}
