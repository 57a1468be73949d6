/* y = x / sqrt(mean(x^2) + epsilon) * weight, per row of n. One work-group a row. */
#version 450
#include <kiln.glsl>

#include "glsl/reduce.glsl"

KILN_VALUES_BEGIN
KILN_VALUE(0, int, n)
KILN_VALUE(1, float, epsilon)
KILN_VALUES_END
KILN_BUFFER(0, float, x)
KILN_BUFFER(1, float, weight)
KILN_BUFFER(2, float, y)

void main()
{
    uint item = gl_LocalInvocationID.x;
    uint length = uint(n);
    uint first = gl_WorkGroupID.x * length;
    float sum = 0.0;
    for (uint i = item; i < length; i += GROUP) {
        sum += x[first + i] * x[first + i];
    }
    float factor = inversesqrt(reduce_sum(sum) / float(n) + epsilon);
    for (uint i = item; i < length; i += GROUP) {
        y[first + i] = x[first + i] * factor * weight[i];
    }
}
