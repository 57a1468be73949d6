/* Activations that several kernels share. */
#ifndef KERNELS_OPENCL_ACTIVATION_H
#define KERNELS_OPENCL_ACTIVATION_H

static inline float activation_relu(float x)
{
    return fmax(x, 0.0f);
}

static inline float activation_silu(float x)
{
    return x / (1.0f + exp(-x));
}

#endif
