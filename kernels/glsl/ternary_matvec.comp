/* y = scale_x * scale_w[row] * (W x): ternary weights, int8 activations, exact integer sums. One
 * item a row of W; n, a multiple of sixteen, is the length of a row. Both are read as words. */
#version 450
#include <kiln.glsl>

#include "glsl/ternary.glsl"

layout(local_size_x_id = 0) in;

KILN_VALUES_BEGIN
KILN_VALUE(0, float, scale_x)
KILN_VALUE(1, int, n)
KILN_VALUES_END
KILN_BUFFER(0, uint, w)
KILN_BUFFER(1, uint, x)
KILN_BUFFER(2, float, scale_w)
KILN_BUFFER(3, float, y)

void main()
{
    uint row = gl_GlobalInvocationID.x;
    uint words = uint(n) / TERNARY_PER_WORD;
    int sum = 0;
    for (uint i = 0u; i < words; i++) {
        uint codes = w[row * words + i];
        for (uint part = 0u; part < 4u; part++) {
            sum += ternary_dot4(codes >> (8u * part), x[4u * i + part]);
        }
    }
    y[row] = scale_x * scale_w[row] * float(sum);
}
