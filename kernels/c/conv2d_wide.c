/* conv2d with WIDE neighbouring columns an item: where all taps lie in the plane, none is asked
 * whether it does. The width is a multiple of WIDE. */
#include <kiln_kernel.h>

#include "c/activation.h"

#ifndef KSIZE
#define KSIZE 3
#endif
#ifndef WIDE
#define WIDE 16
#endif
#define CONV2D_PASTE(size) conv2d_##size##x##size
#define CONV2D_NAME(size) CONV2D_PASTE(size)

/* Adds one row of taps to WIDE sums. `first` wraps to a large number left of the plane. */
static inline void conv2d_row(float *sum, const float *line, const float *taps, size_t column,
                              size_t width)
{
    const int inside = column >= KSIZE / 2 && column + WIDE + KSIZE / 2 <= width;
    for (size_t dx = 0; dx < KSIZE; dx++) {
        const size_t first = column + dx - KSIZE / 2;
        if (inside) {
            for (size_t j = 0; j < WIDE; j++) {
                sum[j] += taps[dx] * line[first + j];
            }
        } else {
            for (size_t j = 0; j < WIDE; j++) {
                sum[j] += first + j < width ? taps[dx] * line[first + j] : 0.0F;
            }
        }
    }
}

KILN_KERNEL(CONV2D_NAME(KSIZE), KILN_IN(float, x), KILN_IN(float, w), KILN_IN(float, bias),
            KILN_OUT(float, y), KILN_VALUE(int32_t, channels))
{
    const size_t width = KILN_GLOBAL_SIZE(0) * WIDE;
    const size_t height = KILN_GLOBAL_SIZE(1);
    const size_t inputs = (size_t)channels;
    KILN_ITEMS_XYZ(strip, row, out)
    {
        float sum[WIDE];
        for (size_t j = 0; j < WIDE; j++) {
            sum[j] = bias[out];
        }
        for (size_t channel = 0; channel < inputs; channel++) {
            const float *taps = w + (out * inputs + channel) * KSIZE * KSIZE;
            for (size_t dy = 0; dy < KSIZE; dy++) {
                const size_t from = row + dy - KSIZE / 2;
                if (from < height) {
                    conv2d_row(sum, x + (channel * height + from) * width, taps + dy * KSIZE,
                               strip * WIDE, width);
                }
            }
        }
        for (size_t j = 0; j < WIDE; j++) {
            y[(out * height + row) * width + strip * WIDE + j] = activation_relu(sum[j]);
        }
    }
}
