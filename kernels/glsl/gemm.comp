/* C = A B, row-major, in TILE x TILE blocks through shared memory. One item an element of C; all
 * sizes are multiples of TILE. */
#version 450
#include <kiln.glsl>

#ifndef TILE
#define TILE 16
#endif

layout(local_size_x = TILE, local_size_y = TILE) in;

KILN_VALUES_BEGIN
KILN_VALUE(0, int, n)
KILN_VALUE(1, int, k)
KILN_VALUES_END
KILN_BUFFER(0, float, a)
KILN_BUFFER(1, float, b)
KILN_BUFFER(2, float, c)

shared float tile_a[TILE][TILE];
shared float tile_b[TILE][TILE];

void main()
{
    int column = int(gl_GlobalInvocationID.x);
    int row = int(gl_GlobalInvocationID.y);
    int x = int(gl_LocalInvocationID.x);
    int y = int(gl_LocalInvocationID.y);
    float sum = 0.0;
    for (int start = 0; start < k; start += TILE) {
        tile_a[y][x] = a[row * k + start + x];
        tile_b[y][x] = b[(start + y) * n + column];
        barrier();
        for (int i = 0; i < TILE; i++) {
            sum += tile_a[y][i] * tile_b[i][x];
        }
        barrier();
    }
    c[row * n + column] = sum;
}
