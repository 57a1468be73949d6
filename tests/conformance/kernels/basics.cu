/* saxpy: a value and two buffers. shape: the ids of every work-item. reverse: eight items exchange
 * what they read through work-group memory. */
extern "C" __global__ void saxpy(float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = a * x[i] + y[i];
}

extern "C" __global__ void shape(int *out)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z;
    int i = (z * gridDim.y * blockDim.y + y) * gridDim.x * blockDim.x + x;
    out[i] = x + 100 * y + 10000 * z;
}

extern "C" __global__ void reverse(const int *in, int *out)
{
    extern __shared__ int tmp[];
    int i = threadIdx.x;
    tmp[i] = in[blockIdx.x * blockDim.x + i];
    __syncthreads();
    out[blockIdx.x * blockDim.x + i] = tmp[blockDim.x - 1 - i];
}
