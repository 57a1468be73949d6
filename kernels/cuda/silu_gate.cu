/* y = silu(gate) * up, one thread an element. */
#include "cuda/activation.h"
#include "cuda/grid.h"

extern "C" __global__ void silu_gate(const float *gate, const float *up, float *y)
{
    size_t i = GRID_ID(x);
    y[i] = activation_silu(gate[i]) * up[i];
}
