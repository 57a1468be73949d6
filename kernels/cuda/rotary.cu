/* Rotary embedding in place: x[token][head] holds dim values; the pair (i, i + dim/2) is turned by
 * (first + token) * base^(-2i/dim). One thread a (pair, head, token). */
#include "cuda/grid.h"

extern "C" __global__ void rotary(float *x, int first, float base)
{
    size_t pair = GRID_ID(x);
    size_t half_dim = GRID_SIZE(x);
    size_t row = GRID_ID(z) * GRID_SIZE(y) + GRID_ID(y);
    float *head = x + row * 2 * half_dim;
    float frequency = powf(base, -(float)pair / (float)half_dim);
    float angle = (float)(first + (int)GRID_ID(z)) * frequency;
    float c = cosf(angle);
    float s = sinf(angle);
    float a = head[pair];
    float b = head[pair + half_dim];
    head[pair] = a * c - b * s;
    head[pair + half_dim] = a * s + b * c;
}
