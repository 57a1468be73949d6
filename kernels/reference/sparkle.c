/* What the convolution and matrix kernels should give, in double and without cleverness. Each takes
 * its kernel's arguments, with double in place of float where it writes; compiled into the program
 * only. */
#include <kiln_kernel.h>

/* A plane of `width` by `height` values, with zeros all around. */
static double value_at(const float *plane, long column, long row, long width, long height)
{
    if (column < 0 || row < 0 || column >= width || row >= height) {
        return 0.0;
    }
    return (double)plane[row * width + column];
}

static double conv_at(const kiln_cpu_group *group, const float *x, const float *taps, long size,
                      long channels, long column, long row)
{
    const long width = (long)group->global[0];
    const long height = (long)group->global[1];
    double sum = 0.0;
    for (long channel = 0; channel < channels; channel++) {
        for (long tap = 0; tap < size * size; tap++) {
            const double value =
                value_at(x + channel * width * height, column + tap % size - size / 2,
                         row + tap / size - size / 2, width, height);
            sum += (double)taps[channel * size * size + tap] * value;
        }
    }
    return sum;
}

static void conv2d(const kiln_cpu_group *kiln_group, const float *x, const float *w,
                   const float *bias, double *y, long channels, long size)
{
    KILN_ITEMS_XYZ(column, row, out)
    {
        const float *taps = w + (long)out * channels * size * size;
        const double sum = (double)bias[out] +
                           conv_at(kiln_group, x, taps, size, channels, (long)column, (long)row);
        const size_t place = (out * KILN_GLOBAL_SIZE(1) + row) * KILN_GLOBAL_SIZE(0) + column;
        y[place] = sum > 0.0 ? sum : 0.0;
    }
}

KILN_KERNEL(conv2d_3x3_reference, KILN_IN(float, x), KILN_IN(float, w), KILN_IN(float, bias),
            KILN_OUT(double, y), KILN_VALUE(int32_t, channels))
{
    conv2d(kiln_group, x, w, bias, y, channels, 3);
}

KILN_KERNEL(conv2d_5x5_reference, KILN_IN(float, x), KILN_IN(float, w), KILN_IN(float, bias),
            KILN_OUT(double, y), KILN_VALUE(int32_t, channels))
{
    conv2d(kiln_group, x, w, bias, y, channels, 5);
}

KILN_KERNEL(gemm_reference, KILN_IN(float, a), KILN_IN(float, b), KILN_OUT(double, c),
            KILN_VALUE(int32_t, n), KILN_VALUE(int32_t, k))
{
    KILN_ITEMS_XY(column, row)
    {
        double sum = 0.0;
        for (size_t i = 0; i < (size_t)k; i++) {
            sum += (double)a[row * (size_t)k + i] * (double)b[i * (size_t)n + column];
        }
        c[row * (size_t)n + column] = sum;
    }
}
