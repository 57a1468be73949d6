/* Reductions over one work-group of GROUP items, GROUP a power of two, which this file declares.
 * Every item of the group must call. */
#ifndef KERNELS_GLSL_REDUCE
#define KERNELS_GLSL_REDUCE

#ifndef GROUP
#define GROUP 64
#endif

layout(local_size_x = GROUP) in;

shared float reduce_scratch[GROUP];

float reduce_max(float value)
{
    uint item = gl_LocalInvocationID.x;
    reduce_scratch[item] = value;
    for (uint width = GROUP / 2; width > 0u; width /= 2u) {
        barrier();
        if (item < width) {
            reduce_scratch[item] = max(reduce_scratch[item], reduce_scratch[item + width]);
        }
    }
    barrier();
    float result = reduce_scratch[0];
    barrier();
    return result;
}

float reduce_sum(float value)
{
    uint item = gl_LocalInvocationID.x;
    reduce_scratch[item] = value;
    for (uint width = GROUP / 2; width > 0u; width /= 2u) {
        barrier();
        if (item < width) {
            reduce_scratch[item] += reduce_scratch[item + width];
        }
    }
    barrier();
    float result = reduce_scratch[0];
    barrier();
    return result;
}

#endif
