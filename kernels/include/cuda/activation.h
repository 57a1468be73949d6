/* Activations that several kernels share. */
#ifndef KERNELS_CUDA_ACTIVATION_H
#define KERNELS_CUDA_ACTIVATION_H

static __device__ inline float activation_relu(float x)
{
    return fmaxf(x, 0.0f);
}

static __device__ inline float activation_silu(float x)
{
    return x / (1.0f + expf(-x));
}

#endif
