/* Level 2: hipRTC through the cache, for a program that compiles HIP C++ and loads it by itself.
 *
 * Replace
 *
 *     hiprtcCreateProgram(&program, text, "kernel.hip", 0, NULL, NULL);
 *     hiprtcAddNameExpression(program, "scale<float>");
 *     hiprtcCompileProgram(program, 1, options);  hiprtcGetCode...  hiprtcGetLoweredName...
 *
 * with
 *
 *     kiln_hiprtc_request request = {.struct_size = sizeof(request), .text = text, ...};
 *     status = kiln_hiprtc_compile(NULL, &request, &result, &diag);
 *     hipModuleLoadData(&module, result->code);  result->lowered[0]
 *     kiln_hiprtc_result_destroy(result);
 *
 * No header of AMD's is needed, no GPU and no driver; a hit does not even open hipRTC. What it
 * compiles was never launched on hardware: it was compared with hipRTC's own output. */
#ifndef KILN_HIP_H
#define KILN_HIP_H

#include "kiln/cache.h"
#include "kiln/source.h"

KILN_BEGIN_DECLS

/* What hiprtcCreateProgram, hiprtcAddNameExpression and hiprtcCompileProgram take. */
typedef struct kiln_hiprtc_request {
    size_t struct_size;
    const char *text;           /* HIP C++ */
    const char *name;           /* shown in messages; NULL: "kernel.hip" */
    const char *const *options; /* as for hipRTC; --offload-arch (or --gpu-architecture) must be
                                   among them: kiln asks no device for it */
    size_t option_count;
    const kiln_header *headers; /* in memory, found before any directory */
    size_t header_count;
    const char *const *expressions; /* whose lowered names are wanted */
    size_t expression_count;
} kiln_hiprtc_request;

/* What hipRTC made, or made once. All of it lives as long as the result. */
typedef struct kiln_hiprtc_result {
    size_t struct_size;
    const void *code;           /* a code object, checked to be one for the target */
    size_t size;                /* bytes */
    const char *log;            /* warnings, "" if none; the same on a hit as on a compile */
    const char *const *lowered; /* one an expression, in the request's order */
    size_t lowered_count;
    kiln_origin origin;
} kiln_hiprtc_result;

/* Compiles, or finds in the cache what hipRTC made of the same text, options, headers and release.
 * Headers that -I directories lead to are followed and belong to the key; what cannot be followed
 * (-include, a header that is in none of those directories) is compiled without the cache, counted
 * and logged. Bitcode (-fgpu-rdc) is refused.
 * Threads: any; equal requests share one compile.   Blocks: disk, another's compile, hipRTC.
 * Owns: borrows the request for the call; *out_result is yours, kiln_hiprtc_result_destroy().
 * `cache` NULL: the default cache, opened for the call.
 * Fails: KILN_E_COMPILE (hipRTC's log in diag; vendor_code is the hiprtcResult), KILN_E_INVALID (no
 * text, no target), KILN_E_UNSUPPORTED (a target that this hipRTC does not know),
 * KILN_E_UNAVAILABLE (no hipRTC), KILN_E_NOMEM. A broken cache never fails it. */
KILN_API KILN_MUST_CHECK kiln_status kiln_hiprtc_compile(kiln_cache *cache,
                                                         const kiln_hiprtc_request *request,
                                                         kiln_hiprtc_result **out_result,
                                                         kiln_diag *diag);
KILN_API void kiln_hiprtc_result_destroy(kiln_hiprtc_result *result);

KILN_END_DECLS

#endif
