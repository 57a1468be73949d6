/* y = relu(conv(x, w) + bias): KSIZE x KSIZE taps, stride 1, zeros outside, channels first. One
 * item a (column, row, output channel). */
#version 450
#include <kiln.glsl>

#include "glsl/activation.glsl"

#ifndef KSIZE
#define KSIZE 3
#endif

layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;

KILN_VALUES_BEGIN
KILN_VALUE(0, int, channels)
KILN_VALUES_END
KILN_BUFFER(0, float, x)
KILN_BUFFER(1, float, w)
KILN_BUFFER(2, float, bias)
KILN_BUFFER(3, float, y)

void main()
{
    ivec3 at = ivec3(gl_GlobalInvocationID);
    ivec3 size = ivec3(gl_NumWorkGroups * gl_WorkGroupSize);
    float sum = bias[at.z];
    for (int channel = 0; channel < channels; channel++) {
        int plane = channel * size.y * size.x;
        int taps = (at.z * channels + channel) * KSIZE * KSIZE;
        for (int dy = 0; dy < KSIZE; dy++) {
            int row = at.y + dy - KSIZE / 2;
            for (int dx = 0; dx < KSIZE; dx++) {
                int column = at.x + dx - KSIZE / 2;
                if (row >= 0 && row < size.y && column >= 0 && column < size.x) {
                    sum += w[taps + dy * KSIZE + dx] * x[plane + row * size.x + column];
                }
            }
        }
    }
    y[(at.z * size.y + at.y) * size.x + at.x] = activation_relu(sum);
}
