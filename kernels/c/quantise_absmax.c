/* Per row of n: scale = max|x| / 127 and q = round(x / scale), int8. One work-group a row. A row of
 * zeros has scale 0 and zeros. */
#include <kiln_kernel.h>
#include <math.h>

#ifndef GROUP
#define GROUP 64
#endif

KILN_KERNEL_GROUP(quantise_absmax, GROUP, 1, 1, KILN_IN(float, x), KILN_OUT(int8_t, q),
                  KILN_OUT(float, scale), KILN_VALUE(int32_t, n))
{
    const size_t row = KILN_GROUP_ID(0);
    const size_t length = (size_t)n;
    const float *from = x + row * length;
    int8_t *to = q + row * length;
    float largest = 0.0F;
    for (size_t i = 0; i < length; i++) {
        largest = fmaxf(largest, fabsf(from[i]));
    }
    const float inverse = largest > 0.0F ? 127.0F / largest : 0.0F;
    for (size_t i = 0; i < length; i++) {
        to[i] = (int8_t)fminf(fmaxf(rintf(from[i] * inverse), -127.0F), 127.0F);
    }
    scale[row] = largest / 127.0F;
}
