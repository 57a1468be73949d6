/* Reductions over one work-group of GROUP items, GROUP a power of two. Every item of the group must
 * call; `scratch` may be used again after the call. */
#ifndef KERNELS_OPENCL_REDUCE_H
#define KERNELS_OPENCL_REDUCE_H

#ifndef GROUP
#define GROUP 64
#endif

static inline float reduce_max(__local float *scratch, float value)
{
    int item = (int)get_local_id(0);
    scratch[item] = value;
    for (int step = GROUP / 2; step > 0; step /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < step) {
            scratch[item] = fmax(scratch[item], scratch[item + step]);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    float result = scratch[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return result;
}

static inline float reduce_sum(__local float *scratch, float value)
{
    int item = (int)get_local_id(0);
    scratch[item] = value;
    for (int step = GROUP / 2; step > 0; step /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < step) {
            scratch[item] += scratch[item + step];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    float result = scratch[0];
    barrier(CLK_LOCAL_MEM_FENCE);
    return result;
}

#endif
