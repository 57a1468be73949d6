/* (c) Hundreds of headers: 256 keys sorted by a block of 64. */
#include <cub/block/block_radix_sort.cuh>

extern "C" __global__ void run(const float *in, float *out)
{
    typedef cub::BlockRadixSort<float, 64, 4> sort;
    __shared__ typename sort::TempStorage memory;
    float keys[4];
    for (int i = 0; i < 4; i++) {
        keys[i] = in[threadIdx.x * 4 + i];
    }
    sort(memory).Sort(keys);
    for (int i = 0; i < 4; i++) {
        out[threadIdx.x * 4 + i] = keys[i];
    }
}
