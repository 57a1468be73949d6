/* Level 2: OpenCL programs through the cache, for a program that owns its context and devices.
 *
 * Replace
 *     program = clCreateProgramWithSource(context, 1, &text, NULL, &err);
 *     err = clBuildProgram(program, 1, &device, options, NULL, NULL);
 * with
 *     status = kiln_opencl_build_program(NULL, context, device, text, options, &program, NULL);
 *
 * No OpenCL header is needed: the handles are OpenCL's own (cl_context is struct _cl_context *). */
#ifndef KILN_OPENCL_H
#define KILN_OPENCL_H

#include "kiln/cache.h"

KILN_BEGIN_DECLS

struct _cl_context;
struct _cl_device_id;
struct _cl_program;

/* Builds `text` for one device of the context: from the cache through clCreateProgramWithBinary, or
 * from source, storing what was built. `options` is what clBuildProgram takes (may be NULL); -I
 * folders in it are followed, and what cannot be followed (-include, a computed #include, options
 * quoted in ways that drivers read differently) is built past the cache, counted and logged.
 * Specification: OpenCL 3.0, clCreateProgramWithBinary.
 *
 * What a program from a binary cannot do, by that specification or by experience: its build log is
 * empty, CL_PROGRAM_SOURCE is empty, some drivers (NVIDIA) answer clGetKernelArgInfo with
 * CL_KERNEL_ARG_INFO_NOT_AVAILABLE, and clBuildProgram cannot be repeated with other options.
 * Threads: any; equal requests share one compile.   Blocks: disk, another's compile, compiler.
 * Owns: *out_program is yours, clReleaseProgram(). `cache` NULL: the default cache, opened for the
 * call.
 * Fails: KILN_E_COMPILE (build log in diag; vendor_code is the cl_int), KILN_E_UNAVAILABLE (no
 * OpenCL library), KILN_E_INVALID, KILN_E_NOMEM. A broken cache never fails it. */
KILN_API KILN_MUST_CHECK kiln_status kiln_opencl_build_program(
    kiln_cache *cache, struct _cl_context *context, struct _cl_device_id *device, const char *text,
    const char *options, struct _cl_program **out_program, kiln_diag *diag);

/* Keeps what PoCL compiled at launches. PoCL makes the final code of a kernel at its first launch
 * with each new local size, and gives a program's binary only after it has compiled every kernel.
 * So a build with PoCL stores nothing: the binary, with all that was launched, is read when the
 * cache is destroyed, if the program has at most eight kernels. Call this when the launches of a
 * run are done (after clFinish) to store a larger program, to store it sooner, or to add what a
 * program that came from the cache was launched with for the first time; kiln has kept text and
 * options. With every other driver there is nothing to do: it gives KILN_MISS.
 *
 * Until the cache is destroyed, or the program is stored and you have released it, kiln holds a
 * reference of each program of PoCL, and with it the context. Destroy the cache before the process
 * begins to exit: the driver is called. A process that never destroys it stores what was captured.
 * Threads: any.   Blocks: disk, PoCL; the first time for as long as PoCL compiles all kernels.
 * Owns: nothing is kept. `cache` is the one that the program was built with, not NULL.
 * Fails: KILN_MISS (no diag) when kiln has not kept the program (it was built past the cache, with
 * another cache, or by another driver than PoCL); KILN_E_UNSUPPORTED when PoCL gives no binary, or
 * does not find the program again (its own cache is off, or a header changed); KILN_E_INVALID,
 * KILN_E_NOMEM, KILN_E_IO. The program goes on working in every case. */
KILN_API KILN_MUST_CHECK kiln_status kiln_opencl_capture_program(kiln_cache *cache,
                                                                 struct _cl_program *program,
                                                                 kiln_diag *diag);

/* The same by context, device, text and options, for programs that were built with the default
 * cache (NULL) or by another process: asks PoCL for the program again, which costs some 30 ms where
 * PoCL finds it, and stores the binary.
 * Threads: any.   Blocks: disk, PoCL.
 * Owns: nothing is kept.
 * Fails: as kiln_opencl_build_program; KILN_MISS when the program goes past the cache;
 * KILN_E_UNSUPPORTED when PoCL does not find it again (its own cache is off, or a header changed).
 */
KILN_API KILN_MUST_CHECK kiln_status kiln_opencl_capture(kiln_cache *cache,
                                                         struct _cl_context *context,
                                                         struct _cl_device_id *device,
                                                         const char *text, const char *options,
                                                         kiln_diag *diag);

KILN_END_DECLS

#endif
