extern "C" __global__ void matmul(const float *a, const float *b, float *c, int n)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0.0f;
    for (int i = 0; i < n; i++) { sum += a[y * n + i] * b[i * n + x]; }
    c[y * n + x] = sum;
}
