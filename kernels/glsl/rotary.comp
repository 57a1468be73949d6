/* Rotary embedding in place: x[token][head] holds dim values; the pair (i, i + dim/2) is turned by
 * (first + token) * base^(-2i/dim). One item a (pair, head, token). */
#version 450
#include <kiln.glsl>

layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;

KILN_VALUES_BEGIN
KILN_VALUE(0, int, first)
KILN_VALUE(1, float, base)
KILN_VALUES_END
KILN_BUFFER(0, float, x)

void main()
{
    uvec3 item = gl_GlobalInvocationID;
    uvec3 items = gl_NumWorkGroups * gl_WorkGroupSize;
    uint head = (item.z * items.y + item.y) * 2u * items.x;
    float frequency = pow(base, -float(item.x) / float(items.x));
    float angle = float(first + int(item.z)) * frequency;
    float c = cos(angle);
    float s = sin(angle);
    float a = x[head + item.x];
    float b = x[head + item.x + items.x];
    x[head + item.x] = a * c - b * s;
    x[head + item.x + items.x] = a * s + b * c;
}
