/* VALUE comes from the command line, SCALE from a header that the test writes. */
#include "scale.inc"

__kernel void value(__global int *out)
{
    out[get_global_id(0)] = VALUE * SCALE;
}
