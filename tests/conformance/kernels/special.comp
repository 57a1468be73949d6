/* special: what a pipeline's own settings change (constants of each type, the size of a group and
 * of a subgroup, flags), of values that come at run time. */
#version 450
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool flag = false;
layout(constant_id = 2) const int whole = -3;
layout(constant_id = 3) const uint natural = 4u;
layout(constant_id = 4) const float real = 0.5;
layout(constant_id = 5) const uint length_of = 2u;

layout(std430, set = 0, binding = 0) buffer From { float x[]; };
layout(std430, set = 0, binding = 1) buffer To { uint words[]; };

shared float part[length_of * 64u];

void main()
{
    part[gl_LocalInvocationIndex] = x[gl_LocalInvocationIndex % 16u] * real;
    barrier();
    uint sum = subgroupAdd(1u);
    if (gl_GlobalInvocationID.x == 0u) {
        words[0] = flag ? 1u : 2u;
        words[1] = uint(whole);
        words[2] = natural * 3u;
        words[3] = floatBitsToUint(part[1] * part[2] + part[3]);
        words[4] = gl_WorkGroupSize.x;
        words[5] = gl_SubgroupSize;
        words[6] = gl_NumSubgroups;
        words[7] = sum;
        words[8] = uint(part.length());
        words[9] = floatBitsToUint(x[0] * x[1]);
    }
}
