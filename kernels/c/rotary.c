/* Rotary embedding in place: x[token][head] holds dim values; the pair (i, i + dim/2) is turned by
 * (first + token) * base^(-2i/dim). One item a (pair, head, token). */
#include <kiln_kernel.h>
#include <math.h>

KILN_KERNEL(rotary, KILN_INOUT(float, x), KILN_VALUE(int32_t, first), KILN_VALUE(float, base))
{
    const size_t half_dim = KILN_GLOBAL_SIZE(0);
    const size_t heads = KILN_GLOBAL_SIZE(1);
    KILN_ITEMS_XYZ(pair, head, token)
    {
        float *at = x + (token * heads + head) * 2 * half_dim;
        const float frequency = powf(base, -(float)pair / (float)half_dim);
        const float angle = (float)(first + (int32_t)token) * frequency;
        const float c = cosf(angle);
        const float s = sinf(angle);
        const float a = at[pair];
        const float b = at[pair + half_dim];
        at[pair] = a * c - b * s;
        at[pair + half_dim] = a * s + b * c;
    }
}
