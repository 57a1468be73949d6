/* VALUE comes from the command line, SCALE from a header that the test writes. */
#version 450
#include <kiln.glsl>

#include "scale.inc"

layout(local_size_x_id = 0) in;
KILN_BUFFER(0, int, result)

void main()
{
    result[gl_GlobalInvocationID.x] = VALUE * SCALE;
}
