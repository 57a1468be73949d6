/* C = A B, row-major, in TILE x TILE blocks through shared memory. One thread an element of C; all
 * sizes are multiples of TILE. */
#include "cuda/grid.h"

#ifndef TILE
#define TILE 16
#endif

extern "C" __global__ void __launch_bounds__(TILE *TILE)
    gemm(const float *a, const float *b, float *c, int n, int k)
{
    __shared__ float tile_a[TILE][TILE];
    __shared__ float tile_b[TILE][TILE];
    int column = (int)GRID_ID(x);
    int row = (int)GRID_ID(y);
    int x = (int)threadIdx.x;
    int y = (int)threadIdx.y;
    float sum = 0.0f;
    for (int start = 0; start < k; start += TILE) {
        tile_a[y][x] = a[row * k + start + x];
        tile_b[y][x] = b[(start + y) * n + column];
        __syncthreads();
        for (int i = 0; i < TILE; i++) {
            sum += tile_a[y][i] * tile_b[i][x];
        }
        __syncthreads();
    }
    c[row * n + column] = sum;
}
