__kernel void matmul(__global const float *a, __global const float *b, __global float *c, int n)
{
    int x = get_global_id(0), y = get_global_id(1);
    float sum = 0.0f;
    for (int i = 0; i < n; i++) { sum += a[y * n + i] * b[i * n + x]; }
    c[y * n + x] = sum;
}
