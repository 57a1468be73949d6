/* y = exp(x - max) / sum(exp(x - max)), per row of n. One work-group a row. */
#include <kiln_kernel.h>
#include <math.h>

#ifndef GROUP
#define GROUP 64
#endif

KILN_KERNEL_GROUP(softmax, GROUP, 1, 1, KILN_IN(float, x), KILN_OUT(float, y),
                  KILN_VALUE(int32_t, n))
{
    const size_t length = (size_t)n;
    const float *from = x + KILN_GROUP_ID(0) * length;
    float *to = y + KILN_GROUP_ID(0) * length;
    float largest = -INFINITY;
    for (size_t i = 0; i < length; i++) {
        largest = fmaxf(largest, from[i]);
    }
    float sum = 0.0F;
    for (size_t i = 0; i < length; i++) {
        to[i] = expf(from[i] - largest);
        sum += to[i];
    }
    const float factor = 1.0F / sum;
    for (size_t i = 0; i < length; i++) {
        to[i] *= factor;
    }
}
