/* sense: what options change in what is computed, of values that come at run time; sixteen of them
 * in, thirty-two words out. */
#include <kiln_kernel.h>

#include <string.h>

#ifndef VALUE
#define VALUE 1
#endif
#warning sense is compiled

typedef enum small_number { SMALL } small_number;

static unsigned bits(float value)
{
    unsigned word;
    memcpy(&word, &value, sizeof(word));
    return word;
}

KILN_KERNEL(sense, KILN_IN(float, x), KILN_OUT(unsigned, out))
{
    KILN_ITEMS_X(i)
    {
        if (i == 0) {
            out[0] = bits(x[0] * x[1]);        /* subnormal */
            out[1] = bits(x[2] * x[3] + x[4]); /* contracted or not */
            out[2] = __builtin_isnan(x[5]) ? 1 : 3;
            out[3] = __builtin_isinf(x[6]) ? 1 : 2;
            out[4] = bits(x[7] + 0.0f); /* the sign of zero */
            out[5] = bits((x[8] + x[9]) - x[8]);
            out[6] = bits(x[9] / x[10]);
            out[11] = bits((float)(x[11] * 0.1 * 10000000.0));
            out[12] = VALUE;
#ifdef __STDC_VERSION__
            out[13] = (unsigned)__STDC_VERSION__;
#endif
#ifdef __FAST_MATH__
            out[14] = 1;
#endif
#ifdef __FINITE_MATH_ONLY__
            out[15] = __FINITE_MATH_ONLY__ + 1;
#endif
#ifdef __OPTIMIZE__
            out[16] = __OPTIMIZE__;
#endif
            out[17] = bits(x[0] + x[0]);
            out[18] = (unsigned)(char)-1 >> 8;
            out[19] = sizeof(small_number);
        }
    }
}
