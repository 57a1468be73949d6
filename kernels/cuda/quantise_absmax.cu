/* Per row of n: scale = max|x| / 127 and q = round(x / scale), int8. One block a row. A row of
 * zeros has scale 0 and zeros. */
#include "cuda/reduce.h"

extern "C" __global__ void __launch_bounds__(GROUP)
    quantise_absmax(const float *x, signed char *q, float *scale, int n)
{
    __shared__ float scratch[GROUP];
    size_t row = blockIdx.x;
    int item = (int)threadIdx.x;
    const float *from = x + row * (size_t)n;
    signed char *to = q + row * (size_t)n;
    float largest = 0.0f;
    for (int i = item; i < n; i += GROUP) {
        largest = fmaxf(largest, fabsf(from[i]));
    }
    largest = reduce_max(scratch, largest);
    float inverse = largest > 0.0f ? 127.0f / largest : 0.0f;
    for (int i = item; i < n; i += GROUP) {
        to[i] = (signed char)fminf(fmaxf(rintf(from[i] * inverse), -127.0f), 127.0f);
    }
    if (item == 0) {
        scale[row] = largest / 127.0f;
    }
}
