/* C = A B, row-major, without shared memory. One item ROWS x WIDE elements of C, in registers; all
 * sizes are multiples of these. */
#version 450
#include <kiln.glsl>

#ifndef ROWS
#define ROWS 4
#endif
#ifndef WIDE
#define WIDE 8
#endif

layout(local_size_x_id = 0, local_size_y_id = 1) in;

KILN_VALUES_BEGIN
KILN_VALUE(0, int, n)
KILN_VALUE(1, int, k)
KILN_VALUES_END
KILN_BUFFER(0, float, a)
KILN_BUFFER(1, float, b)
KILN_BUFFER(2, float, c)

void main()
{
    int column = int(gl_GlobalInvocationID.x) * WIDE;
    int row = int(gl_GlobalInvocationID.y) * ROWS;
    float sum[ROWS * WIDE];
    for (int i = 0; i < ROWS * WIDE; i++) {
        sum[i] = 0.0;
    }
    for (int i = 0; i < k; i++) {
        for (int y = 0; y < ROWS; y++) {
            float left = a[(row + y) * k + i];
            for (int x = 0; x < WIDE; x++) {
                sum[y * WIDE + x] += left * b[i * n + column + x];
            }
        }
    }
    for (int y = 0; y < ROWS; y++) {
        for (int x = 0; x < WIDE; x++) {
            c[(row + y) * n + column + x] = sum[y * WIDE + x];
        }
    }
}
