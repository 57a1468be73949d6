/* Storing what PoCL compiles at its launches. */
#ifndef KILN_UNSTABLE_POCL_H
#define KILN_UNSTABLE_POCL_H

#include "kiln/opencl.h"

KILN_BEGIN_DECLS

/* Stores a program of PoCL, with what PoCL compiled at its launches. PoCL compiles every kernel
 * before it gives a binary, so a build stores nothing there (docs/reference/backends/opencl.md).
 * Call this when the launches of a run are done, after clFinish. With every other driver there is
 * nothing to do: it gives KILN_MISS.
 *
 * Until the cache is destroyed, or the program is stored and you have released it, kiln holds a
 * reference of each program of PoCL, and with it the context. Destroying the cache calls the
 * driver, so do it before the process begins to exit. Without that only captured programs are
 * stored.
 * Threads: any.   Blocks: disk, PoCL; the first time for as long as PoCL compiles all kernels.
 * Owns: nothing is kept. `cache` is the one that the program was built with, not NULL.
 * Fails: KILN_MISS (no diag) when the cache is only read, or kiln has not kept the program (it was
 * built without the cache, with another cache, or by another driver than PoCL);
 * KILN_E_UNSUPPORTED when PoCL gives no binary, or does not find the program again (its own cache
 * is off, or a header changed); KILN_E_INVALID, KILN_E_NOMEM, KILN_E_IO. The program goes on
 * working in every case. */
KILN_API KILN_MUST_CHECK kiln_status kiln_opencl_capture_program(kiln_cache *cache,
                                                                 struct _cl_program *program,
                                                                 kiln_diag *diag);

/* The same by context, device, text and options, for programs that were built with the default
 * cache (NULL) or by another process: asks PoCL for the program again, which costs some 30 ms where
 * PoCL finds it, and stores the binary.
 * Threads: any.   Blocks: disk, PoCL.
 * Owns: nothing is kept.
 * Fails: as kiln_opencl_build_program; KILN_MISS when the program bypasses the cache;
 * KILN_E_UNSUPPORTED when PoCL does not find it again (its own cache is off, or a header changed).
 */
KILN_API KILN_MUST_CHECK kiln_status kiln_opencl_capture(kiln_cache *cache,
                                                         struct _cl_context *context,
                                                         struct _cl_device_id *device,
                                                         const char *text, const char *options,
                                                         kiln_diag *diag);

KILN_END_DECLS

#endif
