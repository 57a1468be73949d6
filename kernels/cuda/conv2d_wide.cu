/* conv2d with WIDE neighbouring columns a thread: where all taps lie in the plane, none is asked
 * whether it does. The width is a multiple of WIDE. */
#include "cuda/activation.h"
#include "cuda/grid.h"

#ifndef KSIZE
#define KSIZE 3
#endif
#ifndef WIDE
#define WIDE 4
#endif
#define CONV2D_PASTE(size) conv2d_##size##x##size
#define CONV2D_NAME(size) CONV2D_PASTE(size)

extern "C" __global__ void CONV2D_NAME(KSIZE)(const float *x, const float *w, const float *bias,
                                              float *y, int channels)
{
    int column = (int)GRID_ID(x) * WIDE;
    int row = (int)GRID_ID(y);
    int out = (int)GRID_ID(z);
    int width = (int)GRID_SIZE(x) * WIDE;
    int height = (int)GRID_SIZE(y);
    bool inside = column >= KSIZE / 2 && column + WIDE + KSIZE / 2 <= width;
    float sum[WIDE];
    for (int j = 0; j < WIDE; j++) {
        sum[j] = bias[out];
    }
    for (int channel = 0; channel < channels; channel++) {
        const float *taps = w + (out * channels + channel) * KSIZE * KSIZE;
        for (int dy = 0; dy < KSIZE; dy++) {
            int from_row = row + dy - KSIZE / 2;
            if (from_row < 0 || from_row >= height) {
                continue;
            }
            const float *line = x + (channel * height + from_row) * width;
            for (int dx = 0; dx < KSIZE; dx++) {
                float tap = taps[dy * KSIZE + dx];
                int first = column + dx - KSIZE / 2;
                if (inside) {
                    for (int j = 0; j < WIDE; j++) {
                        sum[j] += tap * line[first + j];
                    }
                } else {
                    for (int j = 0; j < WIDE; j++) {
                        int from = first + j;
                        sum[j] += from >= 0 && from < width ? tap * line[from] : 0.0f;
                    }
                }
            }
        }
    }
    for (int j = 0; j < WIDE; j++) {
        y[(out * height + row) * width + column + j] = activation_relu(sum[j]);
    }
}
