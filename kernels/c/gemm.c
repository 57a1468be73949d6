/* C = A B, row-major, in TILE x TILE blocks through work-group memory. One item an element of C;
 * all sizes are multiples of TILE. */
#include <kiln_kernel.h>

#ifndef TILE
#define TILE 16
#endif

KILN_KERNEL_GROUP(gemm, TILE, TILE, 1, KILN_IN(float, a), KILN_IN(float, b), KILN_OUT(float, c),
                  KILN_VALUE(int32_t, n), KILN_VALUE(int32_t, k))
{
    const size_t columns = (size_t)n;
    const size_t depth = (size_t)k;
    float tile_a[TILE][TILE] = {{0.0F}};
    float tile_b[TILE][TILE] = {{0.0F}};
    float sum[TILE][TILE] = {{0.0F}};
    for (size_t start = 0; start < depth; start += TILE) {
        KILN_ITEMS_XY(column, row)
        {
            const size_t x = KILN_LOCAL_ID(0, column);
            const size_t y = KILN_LOCAL_ID(1, row);
            tile_a[y][x] = a[row * depth + start + x];
            tile_b[y][x] = b[(start + y) * columns + column];
        }
        KILN_ITEMS_XY(left, top)
        {
            const size_t x = KILN_LOCAL_ID(0, left);
            const size_t y = KILN_LOCAL_ID(1, top);
            float part = sum[y][x];
            for (size_t i = 0; i < TILE; i++) {
                part += tile_a[y][i] * tile_b[i][x];
            }
            sum[y][x] = part;
        }
    }
    KILN_ITEMS_XY(column, row)
    {
        c[row * columns + column] = sum[KILN_LOCAL_ID(1, row)][KILN_LOCAL_ID(0, column)];
    }
}
