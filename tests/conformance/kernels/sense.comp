/* sense: what options change in what is computed, of values that come at run time; sixteen of them
 * in, thirty-two words out. */
#version 450
#extension GL_KILN_unknown : warn
#include <kiln.glsl>

#ifndef VALUE
#define VALUE 1
#endif

layout(local_size_x_id = 0) in;
KILN_BUFFER(0, float, x)
KILN_BUFFER(1, uint, words)

void main()
{
    if (gl_GlobalInvocationID.x == 0u) {
        words[0] = floatBitsToUint(x[0] * x[1]);
        words[1] = floatBitsToUint(x[2] * x[3] + x[4]);
        words[2] = isnan(x[5]) ? 1u : 3u;
        words[3] = isinf(x[6]) ? 1u : 2u;
        words[4] = floatBitsToUint(x[7] + 0.0);
        words[5] = floatBitsToUint((x[8] + x[9]) - x[8]);
        words[6] = floatBitsToUint(x[9] / x[10]);
        words[7] = floatBitsToUint(sqrt(x[10]));
        words[8] = floatBitsToUint(sin(x[9]));
        words[9] = floatBitsToUint(exp(x[10]));
        words[12] = uint(VALUE);
        words[17] = floatBitsToUint(x[0] + x[0]);
    }
}
