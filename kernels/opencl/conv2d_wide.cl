/* conv2d with WIDE neighbouring columns an item: where all taps lie in the plane, none is asked
 * whether it does. The width is a multiple of WIDE. */
#include "opencl/activation.h"

#ifndef KSIZE
#define KSIZE 3
#endif
#ifndef WIDE
#define WIDE 8
#endif
#define CONV2D_PASTE(size) conv2d_##size##x##size
#define CONV2D_NAME(size) CONV2D_PASTE(size)

__kernel void CONV2D_NAME(KSIZE)(__global const float *x, __global const float *w,
                                 __global const float *bias, __global float *y, int channels)
{
    int column = (int)get_global_id(0) * WIDE;
    int row = (int)get_global_id(1);
    int out = (int)get_global_id(2);
    int width = (int)get_global_size(0) * WIDE;
    int height = (int)get_global_size(1);
    int inside = column >= KSIZE / 2 && column + WIDE + KSIZE / 2 <= width;
    float sum[WIDE];
    for (int j = 0; j < WIDE; j++) {
        sum[j] = bias[out];
    }
    for (int channel = 0; channel < channels; channel++) {
        __global const float *taps = w + (out * channels + channel) * KSIZE * KSIZE;
        for (int dy = 0; dy < KSIZE; dy++) {
            int from_row = row + dy - KSIZE / 2;
            if (from_row < 0 || from_row >= height) {
                continue;
            }
            __global const float *line = x + (channel * height + from_row) * width;
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
