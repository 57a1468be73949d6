/* saxpy: a value and two buffers. shape: the ids of every work-item. reverse: eight items exchange
 * what they read through work-group memory. */
__kernel void saxpy(float a, __global const float *x, __global float *y)
{
    size_t i = get_global_id(0);
    y[i] = a * x[i] + y[i];
}

__kernel void shape(__global int *out)
{
    size_t x = get_global_id(0);
    size_t y = get_global_id(1);
    size_t z = get_global_id(2);
    size_t i = (z * get_global_size(1) + y) * get_global_size(0) + x;
    out[i] = (int)(x + 100 * y + 10000 * z);
}

__kernel void reverse(__global const int *in, __global int *out, __local int *tmp)
{
    size_t local_id = get_local_id(0);
    tmp[local_id] = in[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] = tmp[get_local_size(0) - 1 - local_id];
}
