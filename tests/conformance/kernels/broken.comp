#version 450
#include <kiln.glsl>
layout(local_size_x = 1) in;
KILN_BUFFER(0, int, result)
/* Line 8 is no good. */
void main()
{
    result[0] = this_is_not_declared;
}
