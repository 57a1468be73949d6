/* y = x / sqrt(mean(x^2) + epsilon) * weight, per row of n. One work-group a row. */
#include <kiln_kernel.h>
#include <math.h>

#ifndef GROUP
#define GROUP 64
#endif

KILN_KERNEL_GROUP(rms_norm, GROUP, 1, 1, KILN_IN(float, x), KILN_IN(float, weight),
                  KILN_OUT(float, y), KILN_VALUE(int32_t, n), KILN_VALUE(float, epsilon))
{
    const size_t length = (size_t)n;
    const float *from = x + KILN_GROUP_ID(0) * length;
    float *to = y + KILN_GROUP_ID(0) * length;
    float sum = 0.0F;
    for (size_t i = 0; i < length; i++) {
        sum += from[i] * from[i];
    }
    const float factor = 1.0F / sqrtf(sum / (float)n + epsilon);
    for (size_t i = 0; i < length; i++) {
        to[i] = from[i] * factor * weight[i];
    }
}
