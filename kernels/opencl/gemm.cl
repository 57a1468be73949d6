/* C = A B, row-major, in TILE x TILE blocks through local memory. One item an element of C; all
 * sizes are multiples of TILE. */
#ifndef TILE
#define TILE 16
#endif

__kernel __attribute__((reqd_work_group_size(TILE, TILE, 1))) void
gemm(__global const float *a, __global const float *b, __global float *c, int n, int k)
{
    __local float tile_a[TILE][TILE];
    __local float tile_b[TILE][TILE];
    int column = (int)get_global_id(0);
    int row = (int)get_global_id(1);
    int x = (int)get_local_id(0);
    int y = (int)get_local_id(1);
    float sum = 0.0f;
    for (int start = 0; start < k; start += TILE) {
        tile_a[y][x] = a[row * k + start + x];
        tile_b[y][x] = b[(start + y) * n + column];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = 0; i < TILE; i++) {
            sum += tile_a[y][i] * tile_b[i][x];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[row * n + column] = sum;
}
