/* Level 2: NVRTC through the cache, for a program that compiles CUDA C++ and loads it by itself.
 *
 * Replace
 *
 *     nvrtcCreateProgram(&program, text, "kernel.cu", 0, NULL, NULL);
 *     nvrtcAddNameExpression(program, "scale<float>");
 *     nvrtcCompileProgram(program, 1, options);  nvrtcGetCUBIN...  nvrtcGetLoweredName...
 *
 * with
 *
 *     kiln_nvrtc_request request = {.struct_size = sizeof(request), .text = text, ...};
 *     status = kiln_nvrtc_compile(NULL, &request, &result, &diag);
 *     cuLibraryLoadData(&library, result->binary, ...);  result->lowered[0]
 *     kiln_nvrtc_result_destroy(result);
 *
 * No CUDA header is needed, no GPU and no driver; a hit does not even open NVRTC. */
#ifndef KILN_CUDA_H
#define KILN_CUDA_H

#include "kiln/cache.h"
#include "kiln/source.h"

KILN_BEGIN_DECLS

/* What nvrtcCreateProgram, nvrtcAddNameExpression and nvrtcCompileProgram take. */
typedef struct kiln_nvrtc_request {
    size_t struct_size;
    const char *text;           /* CUDA C++ */
    const char *name;           /* shown in messages; NULL: "kernel.cu" */
    const char *const *options; /* as for NVRTC; --gpu-architecture (-arch) must be among them */
    size_t option_count;
    const kiln_header *headers; /* in memory, found before any directory */
    size_t header_count;
    const char *const *expressions; /* whose lowered names are wanted */
    size_t expression_count;
} kiln_nvrtc_request;

/* What NVRTC made, or made once. All of it lives as long as the result. */
typedef struct kiln_nvrtc_result {
    size_t struct_size;
    const void *binary; /* CUBIN for -arch=sm_XX, PTX (with a NUL after it) for compute_XX */
    size_t size;        /* without that NUL */
    bool is_ptx;
    const char *log;            /* warnings, "" if none; the same on a hit as on a compile */
    const char *const *lowered; /* one an expression, in the request's order */
    size_t lowered_count;
    kiln_origin origin;
} kiln_nvrtc_result;

/* Compiles, or finds in the cache what NVRTC made of the same text, options, headers and toolkit.
 * Headers that -I directories (and the toolkit's own, which are searched last) lead to are followed
 * and belong to the key; what cannot be followed (-include, --pre-include, a computed #include of
 * the caller's) is compiled without the cache, counted and logged. Unlike NVRTC by itself, the
 * current directory is not searched: give it with -I. A header of the toolkit needs no -I.
 * Threads: any; equal requests share one compile.   Blocks: disk, another's compile, NVRTC.
 * Owns: borrows the request for the call; *out_result is yours, kiln_nvrtc_result_destroy().
 * `cache` NULL: the default cache, opened for the call.
 * Fails: KILN_E_COMPILE (NVRTC's log in diag; vendor_code is the nvrtcResult), KILN_E_INVALID (no
 * text, no architecture), KILN_E_UNAVAILABLE (no NVRTC), KILN_E_NOMEM. A broken cache never fails
 * it. */
KILN_API KILN_MUST_CHECK kiln_status kiln_nvrtc_compile(kiln_cache *cache,
                                                        const kiln_nvrtc_request *request,
                                                        kiln_nvrtc_result **out_result,
                                                        kiln_diag *diag);
KILN_API void kiln_nvrtc_result_destroy(kiln_nvrtc_result *result);

KILN_END_DECLS

#endif
