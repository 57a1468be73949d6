/* Per row of n, a multiple of four: scale = max|x| / 127 and q = round(x / scale), int8, four to a
 * word. One work-group a row. A row of zeros has scale 0 and zeros. */
#version 450
#include <kiln.glsl>

#include "glsl/reduce.glsl"

KILN_VALUES_BEGIN
KILN_VALUE(0, int, n)
KILN_VALUES_END
KILN_BUFFER(0, float, x)
KILN_BUFFER(1, uint, q)
KILN_BUFFER(2, float, scale)

uint quantised(float value, float inverse)
{
    return uint(int(clamp(roundEven(value * inverse), -127.0, 127.0))) & 0xffu;
}

void main()
{
    uint row = gl_WorkGroupID.x;
    uint item = gl_LocalInvocationID.x;
    uint length = uint(n);
    uint first = row * length;
    float largest = 0.0;
    for (uint i = item; i < length; i += GROUP) {
        largest = max(largest, abs(x[first + i]));
    }
    largest = reduce_max(largest);
    float inverse = largest > 0.0 ? 127.0 / largest : 0.0;
    for (uint i = item; i < length / 4u; i += GROUP) {
        uint at = first + 4u * i;
        q[at / 4u] = quantised(x[at], inverse) | quantised(x[at + 1u], inverse) << 8 |
                     quantised(x[at + 2u], inverse) << 16 | quantised(x[at + 3u], inverse) << 24;
    }
    if (item == 0u) {
        scale[row] = largest / 127.0;
    }
}
