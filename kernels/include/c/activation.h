/* Activations that several kernels share. */
#ifndef KERNELS_C_ACTIVATION_H
#define KERNELS_C_ACTIVATION_H

#include <math.h>

static inline float activation_relu(float x)
{
    return x > 0.0F ? x : 0.0F;
}

static inline float activation_silu(float x)
{
    return x / (1.0F + expf(-x));
}

#endif
