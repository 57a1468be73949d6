/* Level 2: OpenCL programs through the cache, for a program that owns its context and devices.
 *
 * Replace
 *
 *     program = clCreateProgramWithSource(context, 1, &text, NULL, &err);
 *     err = clBuildProgram(program, 1, &device, options, NULL, NULL);
 *
 * with
 *
 *     status = kiln_opencl_build_program(NULL, context, device, text, options, &program, NULL);
 *
 * No OpenCL header is needed: the handles are OpenCL's own (cl_context is struct _cl_context *). */
#ifndef KILN_OPENCL_H
#define KILN_OPENCL_H

#include <stdbool.h>

#include "kiln/cache.h"
#include "kiln/source.h"

KILN_BEGIN_DECLS

struct _cl_context;
struct _cl_device_id;
struct _cl_program;

/* Builds `text` for one device of the context: from the cache through clCreateProgramWithBinary, or
 * from source, storing what was built. `options` is what clBuildProgram takes (may be NULL); -I
 * directories in it are followed, and what cannot be followed (-include, a computed #include,
 * options quoted in ways that drivers read differently) is built without the cache, counted and
 * logged.
 * Specification: OpenCL 3.0, clCreateProgramWithBinary.
 *
 * A hit is built with the same options, and answers and computes what the compile did. What a
 * program from a binary cannot do, by that specification or by experience: its build log is empty,
 * CL_PROGRAM_SOURCE is empty, NVIDIA answers clGetKernelArgInfo with
 * CL_KERNEL_ARG_INFO_NOT_AVAILABLE, PoCL has no CL_KERNEL_ATTRIBUTES, and clBuildProgram cannot be
 * repeated with other options.
 * Threads: any; equal requests share one compile.   Blocks: disk, another's compile, compiler.
 * Owns: *out_program is yours, clReleaseProgram(). `cache` NULL: the default cache, opened for the
 * call.
 * Fails: KILN_E_COMPILE (build log in diag; vendor_code is the cl_int), KILN_E_UNAVAILABLE (no
 * OpenCL library), KILN_E_INVALID, KILN_E_NOMEM. A broken cache never fails it. */
KILN_API KILN_MUST_CHECK kiln_status kiln_opencl_build_program(
    kiln_cache *cache, struct _cl_context *context, struct _cl_device_id *device, const char *text,
    const char *options, struct _cl_program **out_program, kiln_diag *diag);

/* One text, as clCreateProgramWithSource takes it, with the options of its compile. */
typedef struct kiln_opencl_unit {
    size_t struct_size;
    const char *const *strings; /* one after the other they are the text */
    size_t string_count;
    const size_t *lengths; /* NULL, or 0 for one of them: it ends with NUL */
    const char *options;   /* may be NULL */
    /* What clCompileProgram takes as input_headers: found by the names in the text's #include. With
     * headers a program is compiled and linked. */
    const kiln_header *headers;
    size_t header_count;
} kiln_opencl_unit;

/* Called once when a build in the background has finished, in a thread of kiln's. With KILN_OK the
 * program is yours; `diag` is borrowed. It may build and launch; it must not destroy the cache. */
typedef void kiln_opencl_notify_fn(void *user, kiln_status status, struct _cl_program *program,
                                   const kiln_diag *diag);

/* What kiln_opencl_build makes. Zero-initialise, then set struct_size. */
typedef struct kiln_opencl_request {
    size_t struct_size;
    struct _cl_context *context;
    struct _cl_device_id *const *devices; /* all of them are built for, and are one entry */
    size_t device_count;
    const kiln_opencl_unit *units;
    size_t unit_count;
    /* clCompileProgram for each unit and clLinkProgram, in place of clBuildProgram. Set by itself
     * where there are several units, or headers. */
    bool link;
    const char *link_options;      /* may be NULL */
    kiln_opencl_notify_fn *notify; /* NULL: the call returns when the program is there */
    void *user;
} kiln_opencl_request;

/* kiln_opencl_build_program for all that OpenCL can build: text in several strings, several
 * devices, units that are compiled and linked, builds that nobody waits for. What comes of it is
 * the same; one key holds all units, their options, the linker's and all devices. A program that is
 * linked to a library (-create-library) is built without the cache.
 *
 * With `notify` the call copies what it is given and returns at once, with *out_program NULL; the
 * program goes to the callback, which is called in every case but a failure of this call. `cache`
 * must not be NULL then: destroying it waits for such builds.
 * Threads: any.   Blocks: disk, another's compile, compiler; with `notify` never.
 * Owns: *out_program is yours, clReleaseProgram(). The request is copied.
 * Fails: as kiln_opencl_build_program, with the log of the unit or the link that failed;
 * KILN_E_UNSUPPORTED where the library has no clCompileProgram. */
KILN_API KILN_MUST_CHECK kiln_status kiln_opencl_build(kiln_cache *cache,
                                                       const kiln_opencl_request *request,
                                                       struct _cl_program **out_program,
                                                       kiln_diag *diag);

KILN_END_DECLS

#endif
