/* Activations that several kernels share. */
#ifndef KERNELS_GLSL_ACTIVATION
#define KERNELS_GLSL_ACTIVATION

float activation_relu(float x)
{
    return max(x, 0.0);
}

float activation_silu(float x)
{
    return x / (1.0 + exp(-x));
}

#endif
