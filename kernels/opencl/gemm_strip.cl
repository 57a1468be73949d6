/* C = A B, row-major, without local memory. One item ROWS x WIDE elements of C, in registers; all
 * sizes are multiples of these. */
#ifndef ROWS
#define ROWS 4
#endif
#ifndef WIDE
#define WIDE 8
#endif

__kernel void gemm(__global const float *a, __global const float *b, __global float *c, int n,
                   int k)
{
    int column = (int)get_global_id(0) * WIDE;
    int row = (int)get_global_id(1) * ROWS;
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
