/* y = silu(gate) * up, one item an element. */
#version 450
#include <kiln.glsl>

#include "glsl/activation.glsl"

layout(local_size_x_id = 0) in;

KILN_BUFFER(0, float, gate)
KILN_BUFFER(1, float, up)
KILN_BUFFER(2, float, y)

void main()
{
    uint i = gl_GlobalInvocationID.x;
    y[i] = activation_silu(gate[i]) * up[i];
}
