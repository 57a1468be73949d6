/* Level 2: OpenCL programs through the cache, for a program that owns its context and devices.
 *
 * Replace
 *     program = clCreateProgramWithSource(context, 1, &text, NULL, &err);
 *     err = clBuildProgram(program, 1, &device, options, NULL, NULL);
 * with
 *     status = kiln_opencl_build_program(NULL, context, device, text, options, &program, NULL);
 *
 * No OpenCL header is needed: the handles are OpenCL's own (`cl_context` is `struct _cl_context
 * *`). */
#ifndef KILN_OPENCL_H
#define KILN_OPENCL_H

#include "kiln/cache.h"

KILN_BEGIN_DECLS

struct _cl_context;
struct _cl_device_id;
struct _cl_program;

/* Builds `text` for one device of the context: from the cache through clCreateProgramWithBinary, or
 * from source, storing what was built. `options` is what clBuildProgram takes (may be NULL); -I
 * folders in it are followed. Specification: OpenCL 3.0, clCreateProgramWithBinary.
 * Threads: any; equal requests share one compile.   Blocks: disk, another's compile, compiler.
 * Owns: *out_program is yours, clReleaseProgram(). `cache` NULL: the default cache, opened for the
 * call.
 * Fails: KILN_E_COMPILE (build log in diag; vendor_code is the cl_int), KILN_E_UNAVAILABLE (no
 * OpenCL library), KILN_E_INVALID, KILN_E_NOMEM. A broken cache never fails it. */
KILN_API KILN_MUST_CHECK kiln_status kiln_opencl_build_program(
    kiln_cache *cache, struct _cl_context *context, struct _cl_device_id *device, const char *text,
    const char *options, struct _cl_program **out_program, kiln_diag *diag);

KILN_END_DECLS

#endif
