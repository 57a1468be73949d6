/* Reductions over one block of GROUP threads, GROUP a power of two. Every thread of the block must
 * call; `scratch` may be used again after the call. */
#ifndef KERNELS_CUDA_REDUCE_H
#define KERNELS_CUDA_REDUCE_H

#ifndef GROUP
#define GROUP 64
#endif

static __device__ inline float reduce_max(float *scratch, float value)
{
    int item = (int)threadIdx.x;
    scratch[item] = value;
    for (int step = GROUP / 2; step > 0; step /= 2) {
        __syncthreads();
        if (item < step) {
            scratch[item] = fmaxf(scratch[item], scratch[item + step]);
        }
    }
    __syncthreads();
    float result = scratch[0];
    __syncthreads();
    return result;
}

static __device__ inline float reduce_sum(float *scratch, float value)
{
    int item = (int)threadIdx.x;
    scratch[item] = value;
    for (int step = GROUP / 2; step > 0; step /= 2) {
        __syncthreads();
        if (item < step) {
            scratch[item] += scratch[item + step];
        }
    }
    __syncthreads();
    float result = scratch[0];
    __syncthreads();
    return result;
}

#endif
