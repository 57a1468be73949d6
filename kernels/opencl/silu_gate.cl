/* y = silu(gate) * up, one item an element. */
#include "opencl/activation.h"

__kernel void silu_gate(__global const float *gate, __global const float *up, __global float *y)
{
    size_t i = get_global_id(0);
    y[i] = activation_silu(gate[i]) * up[i];
}
