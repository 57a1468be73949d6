/* sense: what options change in what is computed, of values that come at run time; sixteen of them
 * in, thirty-two words out. */
#ifndef VALUE
#define VALUE 1
#endif
#warning sense is compiled

extern "C" __global__ void sense(const float *x, unsigned *out)
{
    if (blockIdx.x * blockDim.x + threadIdx.x == 0) {
        out[0] = __float_as_uint(x[0] * x[1]);        /* subnormal */
        out[1] = __float_as_uint(x[2] * x[3] + x[4]); /* contracted or not */
        out[2] = isnan(x[5]) ? 1 : 3;
        out[3] = isinf(x[6]) ? 1 : 2;
        out[4] = __float_as_uint(x[7] + 0.0f);        /* the sign of zero */
        out[5] = __float_as_uint((x[8] + x[9]) - x[8]);
        out[6] = __float_as_uint(x[9] / x[10]);       /* correctly rounded */
        out[7] = __float_as_uint(sqrtf(x[10]));
        out[8] = __float_as_uint(sinf(x[1]));
        out[9] = __float_as_uint(expf(x[10]));
        out[11] = __float_as_uint((float)(x[11] * 0.1 * 10000000.0));
        out[12] = VALUE;
        out[13] = __cplusplus;
        out[17] = __float_as_uint(x[0] + x[0]);
        out[19] = __float_as_uint(powf(x[10], x[9]));
    }
}
