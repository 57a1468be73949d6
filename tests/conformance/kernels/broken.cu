/* Line 4 is no good. */
extern "C" __global__ void broken(int *out)
{
    out[0] = this_is_not_declared;
}
