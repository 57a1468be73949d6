/* y = exp(x - max) / sum(exp(x - max)), per row of n. One work-group a row. */
#version 450
#include <kiln.glsl>

#include "glsl/reduce.glsl"

KILN_VALUES_BEGIN
KILN_VALUE(0, int, n)
KILN_VALUES_END
KILN_BUFFER(0, float, x)
KILN_BUFFER(1, float, y)

void main()
{
    uint item = gl_LocalInvocationID.x;
    uint length = uint(n);
    uint first = gl_WorkGroupID.x * length;
    float largest = x[first];
    for (uint i = item; i < length; i += GROUP) {
        largest = max(largest, x[first + i]);
    }
    largest = reduce_max(largest);
    float sum = 0.0;
    for (uint i = item; i < length; i += GROUP) {
        float e = exp(x[first + i] - largest);
        y[first + i] = e;
        sum += e;
    }
    float factor = 1.0 / reduce_sum(sum);
    for (uint i = item; i < length; i += GROUP) {
        y[first + i] *= factor;
    }
}
