/* y += a * x, one thread an element. */
#include "cuda/grid.h"

extern "C" __global__ void saxpy(float a, const float *x, float *y)
{
    size_t i = GRID_ID(x);
    y[i] = a * x[i] + y[i];
}
