/* What the kernels of a BitNet layer should give, in double and without cleverness. Each takes its
 * kernel's arguments, with double in place of float where it writes; compiled into the program
 * only. */
#include <kiln_kernel.h>
#include <math.h>

/* The table of include/c/ternary.h, again, so that an error there shows. */
static int weight_at(const uint8_t *w, size_t index)
{
    static const int table[4] = {-1, 0, 1, 0};
    return table[w[index / 4] >> (2 * (index % 4)) & 3];
}

static double row_dot(const uint8_t *w, size_t row, const int8_t *x, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        sum += (double)weight_at(w, row * n + i) * (double)x[i];
    }
    return sum;
}

KILN_KERNEL(saxpy_reference, KILN_VALUE(float, a), KILN_IN(float, x), KILN_INOUT(double, y))
{
    KILN_ITEMS_X(i)
    {
        y[i] = (double)a * (double)x[i] + y[i];
    }
}

KILN_KERNEL(ternary_matvec_reference, KILN_IN(uint8_t, w), KILN_IN(int8_t, x),
            KILN_IN(float, scale_w), KILN_VALUE(float, scale_x), KILN_OUT(double, y),
            KILN_VALUE(int32_t, n))
{
    KILN_ITEMS_X(row)
    {
        y[row] = (double)scale_x * (double)scale_w[row] * row_dot(w, row, x, (size_t)n);
    }
}

KILN_KERNEL(ternary_matmul_reference, KILN_IN(uint8_t, w), KILN_IN(int8_t, x),
            KILN_IN(float, scale_w), KILN_IN(float, scale_x), KILN_OUT(double, y),
            KILN_VALUE(int32_t, n))
{
    KILN_ITEMS_XY(row, token)
    {
        const double sum = row_dot(w, row, x + token * (size_t)n, (size_t)n);
        y[token * KILN_GLOBAL_SIZE(0) + row] = (double)scale_x[token] * (double)scale_w[row] * sum;
    }
}

KILN_KERNEL(quantise_absmax_reference, KILN_IN(float, x), KILN_OUT(int8_t, q),
            KILN_OUT(double, scale), KILN_VALUE(int32_t, n))
{
    const size_t row = KILN_GROUP_ID(0);
    double largest = 0.0;
    for (size_t i = row * (size_t)n; i < (row + 1) * (size_t)n; i++) {
        largest = fmax(largest, fabs((double)x[i]));
    }
    scale[row] = largest / 127.0;
    for (size_t i = row * (size_t)n; i < (row + 1) * (size_t)n; i++) {
        q[i] = (int8_t)(largest > 0.0 ? rint((double)x[i] / scale[row]) : 0.0);
    }
}

KILN_KERNEL(rms_norm_reference, KILN_IN(float, x), KILN_IN(float, weight), KILN_OUT(double, y),
            KILN_VALUE(int32_t, n), KILN_VALUE(float, epsilon))
{
    const size_t first = KILN_GROUP_ID(0) * (size_t)n;
    double sum = 0.0;
    for (size_t i = 0; i < (size_t)n; i++) {
        sum += (double)x[first + i] * (double)x[first + i];
    }
    for (size_t i = 0; i < (size_t)n; i++) {
        y[first + i] =
            (double)x[first + i] / sqrt(sum / (double)n + (double)epsilon) * (double)weight[i];
    }
}

KILN_KERNEL(softmax_reference, KILN_IN(float, x), KILN_OUT(double, y), KILN_VALUE(int32_t, n))
{
    const size_t first = KILN_GROUP_ID(0) * (size_t)n;
    double largest = -INFINITY;
    double sum = 0.0;
    for (size_t i = 0; i < (size_t)n; i++) {
        largest = fmax(largest, (double)x[first + i]);
    }
    for (size_t i = 0; i < (size_t)n; i++) {
        sum += exp((double)x[first + i] - largest);
    }
    for (size_t i = 0; i < (size_t)n; i++) {
        y[first + i] = exp((double)x[first + i] - largest) / sum;
    }
}

KILN_KERNEL(rotary_reference, KILN_INOUT(double, x), KILN_VALUE(int32_t, first),
            KILN_VALUE(float, base))
{
    const size_t half_dim = KILN_GLOBAL_SIZE(0);
    KILN_ITEMS_XYZ(pair, head, token)
    {
        double *at = x + (token * KILN_GLOBAL_SIZE(1) + head) * 2 * half_dim;
        const double turn = (double)first + (double)token;
        const double angle = turn * pow((double)base, -(double)pair / (double)half_dim);
        const double a = at[pair];
        const double b = at[pair + half_dim];
        at[pair] = a * cos(angle) - b * sin(angle);
        at[pair + half_dim] = a * sin(angle) + b * cos(angle);
    }
}

KILN_KERNEL(silu_gate_reference, KILN_IN(float, gate), KILN_IN(float, up), KILN_OUT(double, y))
{
    KILN_ITEMS_X(i)
    {
        y[i] = (double)gate[i] / (1.0 + exp(-(double)gate[i])) * (double)up[i];
    }
}
