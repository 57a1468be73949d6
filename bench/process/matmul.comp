#version 450
#include <kiln.glsl>
layout(local_size_x = 8, local_size_y = 8) in;
KILN_VALUES_BEGIN
KILN_VALUE(0, int, n)
KILN_VALUES_END
KILN_BUFFER(0, float, a)
KILN_BUFFER(1, float, b)
KILN_BUFFER(2, float, c)
void main()
{
    int x = int(gl_GlobalInvocationID.x), y = int(gl_GlobalInvocationID.y);
    float sum = 0.0;
    for (int i = 0; i < n; i++) { sum += a[y * n + i] * b[i * n + x]; }
    c[y * n + x] = sum;
}
