/* GLSL has one entry a text: saxpy, or with KERNEL_SHAPE shape, with KERNEL_REVERSE reverse. */
#version 450
#include <kiln.glsl>

#if defined(KERNEL_SHAPE)

layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;
KILN_BUFFER(0, int, result)

void main()
{
    uvec3 at = gl_GlobalInvocationID;
    uvec3 size = gl_NumWorkGroups * gl_WorkGroupSize;
    uint i = (at.z * size.y + at.y) * size.x + at.x;
    result[i] = int(at.x + 100u * at.y + 10000u * at.z);
}

#elif defined(KERNEL_REVERSE)

layout(local_size_x = 8) in;
KILN_BUFFER(0, int, source)
KILN_BUFFER(1, int, result)
shared int tmp[8];

void main()
{
    uint at = gl_LocalInvocationID.x;
    tmp[at] = source[gl_GlobalInvocationID.x];
    barrier();
    result[gl_GlobalInvocationID.x] = tmp[gl_WorkGroupSize.x - 1u - at];
}

#else

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

#endif
