/* conv2d with WIDE neighbouring columns an item: where all taps lie in the plane, none is asked
 * whether it does. The width is a multiple of WIDE. */
#version 450
#include <kiln.glsl>

#include "glsl/activation.glsl"

#ifndef KSIZE
#define KSIZE 3
#endif
#ifndef WIDE
#define WIDE 4
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
    ivec3 at = ivec3(gl_GlobalInvocationID) * ivec3(WIDE, 1, 1);
    ivec3 size = ivec3(gl_NumWorkGroups * gl_WorkGroupSize) * ivec3(WIDE, 1, 1);
    bool inside = at.x >= KSIZE / 2 && at.x + WIDE + KSIZE / 2 <= size.x;
    float sum[WIDE];
    for (int j = 0; j < WIDE; j++) {
        sum[j] = bias[at.z];
    }
    for (int channel = 0; channel < channels; channel++) {
        int taps = (at.z * channels + channel) * KSIZE * KSIZE;
        for (int dy = 0; dy < KSIZE; dy++) {
            int row = at.y + dy - KSIZE / 2;
            if (row < 0 || row >= size.y) {
                continue;
            }
            int line = (channel * size.y + row) * size.x;
            for (int dx = 0; dx < KSIZE; dx++) {
                float tap = w[taps + dy * KSIZE + dx];
                int first = at.x + dx - KSIZE / 2;
                for (int j = 0; j < WIDE; j++) {
                    int from = first + j;
                    if (inside || (from >= 0 && from < size.x)) {
                        sum[j] += tap * x[line + from];
                    }
                }
            }
        }
    }
    for (int j = 0; j < WIDE; j++) {
        y[(at.z * size.y + at.y) * size.x + at.x + j] = activation_relu(sum[j]);
    }
}
