/* C = A B, row-major, without shared memory. One thread ROWS x WIDE elements of C, in registers;
 * all sizes are multiples of these. */
#include "cuda/grid.h"

#ifndef ROWS
#define ROWS 4
#endif
#ifndef WIDE
#define WIDE 8
#endif

extern "C" __global__ void gemm(const float *a, const float *b, float *c, int n, int k)
{
    int column = (int)GRID_ID(x) * WIDE;
    int row = (int)GRID_ID(y) * ROWS;
    float sum[ROWS][WIDE];
    for (int y = 0; y < ROWS; y++) {
        for (int x = 0; x < WIDE; x++) {
            sum[y][x] = 0.0f;
        }
    }
    for (int i = 0; i < k; i++) {
        for (int y = 0; y < ROWS; y++) {
            float left = a[(row + y) * k + i];
            for (int x = 0; x < WIDE; x++) {
                sum[y][x] += left * b[i * n + column + x];
            }
        }
    }
    for (int y = 0; y < ROWS; y++) {
        for (int x = 0; x < WIDE; x++) {
            c[(row + y) * n + column + x] = sum[y][x];
        }
    }
}
