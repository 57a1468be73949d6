/* From a ready context of OpenCL to the first result, however the program is made. */
#ifndef KILN_BENCH_WARM_OPENCL_H
#define KILN_BENCH_WARM_OPENCL_H

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdbool.h>

typedef cl_int warm_opencl_build(cl_context context, cl_device_id device, cl_program *out_program);

typedef void warm_opencl_end(cl_context context, cl_device_id device);

/* Prints "load first" in microseconds, then calls `end` unless it is NULL; false if it failed. */
bool warm_opencl_from(warm_opencl_build *build, warm_opencl_end *end);

#endif
