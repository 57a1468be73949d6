/* Compiling ahead for programs and other processes, as kiln compile and kiln warm do: with what it
 * took, and for drop-in calls. */
#ifndef KILN_UNSTABLE_COMPILE_H
#define KILN_UNSTABLE_COMPILE_H

#include "kiln/program.h"

KILN_BEGIN_DECLS

/* Compiles for a named target without a device: `target` is "backend" or "backend:name", for
 * example "cpu:native", "cpu:x86-64-v3", "cuda:sm_90", "opencl:0". The result is an ordinary cache
 * entry per stage; *out_blob is the last stage's artifact.
 * Threads: any.   Blocks: disk, compiler.
 * Owns: *out_blob is yours, kiln_blob_release(). `out_origin` may be NULL.
 * Fails: as kiln_program_build; KILN_E_UNSUPPORTED if the backend needs a device to compile and has
 * none. */
KILN_API KILN_MUST_CHECK kiln_status kiln_compile(kiln_runtime *runtime, const char *target,
                                                  const kiln_source *source, kiln_blob **out_blob,
                                                  kiln_origin *out_origin, kiln_diag *diag);

/* kiln_compile that says how the binary came to be: as kiln_program_get_info does of a
 * program, but nothing is loaded (load_ns is 0) and there is no log.
 * Threads: any.   Blocks: disk, compiler.
 * Owns: *out_blob is yours, kiln_blob_release(); *out_info is the caller's struct, its struct_size
 * set before.
 * Fails: as kiln_compile, and KILN_E_INVALID (struct_size); *out_info is zeroed otherwise. */
KILN_API KILN_MUST_CHECK kiln_status
kiln_compile_measured(kiln_runtime *runtime, const char *target, const kiln_source *source,
                      kiln_blob **out_blob, kiln_build_info *out_info, kiln_diag *diag);

/* Fills the cache for a drop-in call of another process (level 2): for kiln_opencl_build_program on
 * a device ("opencl:0"), for kiln_nvrtc_compile ("cuda:sm_90") and kiln_hiprtc_compile
 * ("hip:gfx90a"). The call finds what is stored if its text is the same, and its options are those
 * here: the definitions as -DNAME=VALUE, then `options`, in this order (-I has no place in it).
 * What the program quotes or writes in another way ("-D NAME") is best given in `options` as it is
 * there. Entries are checked; the source's own directory is not searched, for the call knows none.
 * Threads: any.   Blocks: disk, compiler.
 * Owns: *out_blob is yours, kiln_blob_release(); *out_info is the caller's struct, its struct_size
 * set before (filled: origin, key, compiles, compile_ns, total_ns).
 * Fails: as kiln_compile; KILN_E_UNSUPPORTED for Vulkan and OpenGL, whose drop-in entries depend on
 * what only the program knows, and for what bypasses the cache. */
KILN_API KILN_MUST_CHECK kiln_status kiln_dropin_compile(kiln_runtime *runtime, const char *target,
                                                         const kiln_source *source,
                                                         kiln_blob **out_blob,
                                                         kiln_build_info *out_info,
                                                         kiln_diag *diag);

KILN_END_DECLS

#endif
