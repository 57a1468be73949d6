/* y = relu(conv(x, w) + bias): KSIZE x KSIZE taps, stride 1, zeros outside, channels first. One
 * item a (column, row, output channel). The kernel is named after its size: conv2d_3x3, conv2d_5x5.
 */
#include "opencl/activation.h"

#ifndef KSIZE
#define KSIZE 3
#endif
#define CONV2D_PASTE(size) conv2d_##size##x##size
#define CONV2D_NAME(size) CONV2D_PASTE(size)

__kernel void CONV2D_NAME(KSIZE)(__global const float *x, __global const float *w,
                                 __global const float *bias, __global float *y, int channels)
{
    int column = (int)get_global_id(0);
    int row = (int)get_global_id(1);
    int out = (int)get_global_id(2);
    int width = (int)get_global_size(0);
    int height = (int)get_global_size(1);
    float sum = bias[out];
    for (int channel = 0; channel < channels; channel++) {
        __global const float *plane = x + channel * height * width;
        __global const float *taps = w + (out * channels + channel) * KSIZE * KSIZE;
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
