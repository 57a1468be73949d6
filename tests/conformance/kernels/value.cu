/* VALUE comes from the command line, SCALE from a header that the test writes. */
#include "scale.inc"

extern "C" __global__ void value(int *out)
{
    out[blockIdx.x * blockDim.x + threadIdx.x] = VALUE * SCALE;
}
