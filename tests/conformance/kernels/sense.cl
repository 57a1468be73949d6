/* sense: what options change in what is computed, of values that come at run time; sixteen of them
 * in, thirty-two words out. fixed: a kernel with attributes. */
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#ifndef VALUE
#define VALUE 1
#endif
#warning sense is compiled

__kernel void sense(__global const float *restrict x, __global uint *out)
{
    size_t i = get_global_id(0);
    if (i == 0) {
        out[0] = as_uint(x[0] * x[1]);                   /* subnormal */
        out[1] = as_uint(x[2] * x[3] + x[4]);            /* contracted or not */
        out[2] = isnan(x[5]) ? 1 : isinf(x[6]) ? 2 : 3;  /* finite only */
        out[3] = isinf(x[6]) ? 1 : 2;
        out[4] = as_uint(x[7] + 0.0f);                   /* the sign of zero */
        out[5] = as_uint((x[8] + x[9]) - x[8]);          /* order */
        out[6] = as_uint(x[9] / x[10]);                  /* correctly rounded */
        out[7] = as_uint(sqrt(x[10]));
        out[8] = as_uint(sin(x[1]));
        out[9] = as_uint(exp(x[10]));
        out[10] = as_uint(native_exp(x[10]));
        out[11] = as_uint((float)(x[11] * 0.1 * 10000000.0)); /* constants in double */
        out[12] = VALUE;
        out[13] = __OPENCL_C_VERSION__;
#ifdef __FAST_RELAXED_MATH__
        out[14] = __FAST_RELAXED_MATH__;
#endif
#ifdef __FINITE_MATH_ONLY__
        out[15] = __FINITE_MATH_ONLY__ + 1;
#endif
#ifdef __OPTIMIZE__
        out[16] = __OPTIMIZE__;
#endif
        out[17] = as_uint(x[0] + x[0]);
        out[18] = as_uint(mad(x[2], x[3], x[4]));
        out[19] = as_uint(pow(x[10], x[9]));
    }
}

__kernel __attribute__((reqd_work_group_size(4, 1, 1))) void fixed(__global uint *out, __local uint *tmp,
                                                                   const uint4 value)
{
    tmp[get_local_id(0)] = value.x;
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] = tmp[3 - get_local_id(0)] + (uint)get_local_size(0);
}
