/* y = relu(conv(x, w) + bias): KSIZE x KSIZE taps, stride 1, zeros outside, channels first. One
 * item a (column, row, output channel). The kernel is named after its size: conv2d_3x3, conv2d_5x5.
 */
#include <kiln_kernel.h>

#include "c/activation.h"

#ifndef KSIZE
#define KSIZE 3
#endif
#define CONV2D_PASTE(size) conv2d_##size##x##size
#define CONV2D_NAME(size) CONV2D_PASTE(size)

/* One channel's taps around (column, row). Places outside the plane wrap to large numbers and are
 * passed over, as zeros would be. */
static inline float conv2d_taps(const float *plane, const float *taps, size_t column, size_t row,
                                size_t width, size_t height)
{
    float sum = 0.0F;
    for (size_t dy = 0; dy < KSIZE; dy++) {
        const size_t from_row = row + dy - KSIZE / 2;
        for (size_t dx = 0; dx < KSIZE; dx++) {
            const size_t from_column = column + dx - KSIZE / 2;
            if (from_row < height && from_column < width) {
                sum += taps[dy * KSIZE + dx] * plane[from_row * width + from_column];
            }
        }
    }
    return sum;
}

KILN_KERNEL(CONV2D_NAME(KSIZE), KILN_IN(float, x), KILN_IN(float, w), KILN_IN(float, bias),
            KILN_OUT(float, y), KILN_VALUE(int32_t, channels))
{
    const size_t width = KILN_GLOBAL_SIZE(0);
    const size_t height = KILN_GLOBAL_SIZE(1);
    const size_t inputs = (size_t)channels;
    KILN_ITEMS_XYZ(column, row, out)
    {
        float sum = bias[out];
        for (size_t channel = 0; channel < inputs; channel++) {
            sum += conv2d_taps(x + channel * height * width,
                               w + (out * inputs + channel) * KSIZE * KSIZE, column, row, width,
                               height);
        }
        y[(out * height + row) * width + column] = activation_relu(sum);
    }
}
