/* y = relu(conv(x, w) + bias): KSIZE x KSIZE taps, stride 1, zeros outside, channels first. One
 * thread a (column, row, output channel). The kernel is named after its size: conv2d_3x3,
 * conv2d_5x5. */
#include "cuda/activation.h"
#include "cuda/grid.h"

#ifndef KSIZE
#define KSIZE 3
#endif
#define CONV2D_PASTE(size) conv2d_##size##x##size
#define CONV2D_NAME(size) CONV2D_PASTE(size)

extern "C" __global__ void CONV2D_NAME(KSIZE)(const float *x, const float *w, const float *bias,
                                              float *y, int channels)
{
    int column = (int)GRID_ID(x);
    int row = (int)GRID_ID(y);
    int out = (int)GRID_ID(z);
    int width = (int)GRID_SIZE(x);
    int height = (int)GRID_SIZE(y);
    float sum = bias[out];
    for (int channel = 0; channel < channels; channel++) {
        const float *plane = x + channel * height * width;
        const float *taps = w + (out * channels + channel) * KSIZE * KSIZE;
        for (int dy = 0; dy < KSIZE; dy++) {
            int from_row = row + dy - KSIZE / 2;
            for (int dx = 0; dx < KSIZE; dx++) {
                int from_column = column + dx - KSIZE / 2;
                if (from_row >= 0 && from_row < height && from_column >= 0 && from_column < width) {
                    sum += taps[dy * KSIZE + dx] * plane[from_row * width + from_column];
                }
            }
        }
    }
    y[(out * height + row) * width + column] = activation_relu(sum);
}
