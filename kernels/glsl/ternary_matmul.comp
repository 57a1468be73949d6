/* y[token][row] = scale_x[token] * scale_w[row] * (W x[token]): the same as ternary_matvec for many
 * tokens at once. One item a (row, token). */
#version 450
#include <kiln.glsl>

#include "glsl/ternary.glsl"

layout(local_size_x_id = 0, local_size_y_id = 1) in;

KILN_VALUES_BEGIN
KILN_VALUE(0, int, n)
KILN_VALUES_END
KILN_BUFFER(0, uint, w)
KILN_BUFFER(1, uint, x)
KILN_BUFFER(2, float, scale_w)
KILN_BUFFER(3, float, scale_x)
KILN_BUFFER(4, float, y)

void main()
{
    uint row = gl_GlobalInvocationID.x;
    uint token = gl_GlobalInvocationID.y;
    uint rows = gl_NumWorkGroups.x * gl_WorkGroupSize.x;
    uint words = uint(n) / TERNARY_PER_WORD;
    int sum = 0;
    for (uint i = 0u; i < words; i++) {
        uint codes = w[row * words + i];
        for (uint part = 0u; part < 4u; part++) {
            sum += ternary_dot4(codes >> (8u * part), x[4u * (token * words + i) + part]);
        }
    }
    y[token * rows + row] = scale_x[token] * scale_w[row] * float(sum);
}
