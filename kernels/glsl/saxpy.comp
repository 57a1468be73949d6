/* y += a * x, one item an element. */
#version 450
#include <kiln.glsl>

layout(local_size_x_id = 0) in;

KILN_VALUES_BEGIN
KILN_VALUE(0, float, a)
KILN_VALUES_END
KILN_BUFFER(0, float, x)
KILN_BUFFER(1, float, y)

void main()
{
    uint i = gl_GlobalInvocationID.x;
    y[i] = a * x[i] + y[i];
}
