/* Line 4 is no good. */
__kernel void broken(__global int *out)
{
    out[0] = this_is_not_declared;
}
