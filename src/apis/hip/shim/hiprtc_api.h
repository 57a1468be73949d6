/* hipRTC's functions as one table, as nvrtc_api.h has NVRTC's: what kiln's libraries in hipRTC's
 * place (programs/kiln-interpose) and their core agree on. This file must not include anything of
 * kiln's library. */
#ifndef KILN_HIP_SHIM_HIPRTC_API_H
#define KILN_HIP_SHIM_HIPRTC_API_H

#include <stddef.h>

typedef int hiprtcResult;
typedef void *hiprtcProgram;
typedef void *hiprtcLinkState;

typedef struct kn_hiprtc_table {
#define X(name, parameters, arguments) hiprtcResult(*name) parameters;
#include "apis/hip/shim/hiprtc_calls.def"
#undef X
    const char *(*hiprtcGetErrorString)(hiprtcResult result);
} kn_hiprtc_table;

/* hipRTC is a library of its own, and in HIP's runtime up to ROCm 6: a program may use both. */
typedef enum kn_hiprtc_place {
    KN_HIPRTC_APART = 0, /* libhiprtc.so.N */
    KN_HIPRTC_INSIDE = 1 /* libamdhip64.so.N */
} kn_hiprtc_place;
enum { KN_HIPRTC_PLACES = 2 };

/* How the core reaches the hipRTC that the program would have got. */
typedef struct kn_hiprtc_real {
    const char *path; /* of its file */
    kn_hiprtc_place place;
    /* Opens it, once; NULL if it cannot be opened. A member that this version lacks is NULL.
     * Threads: any. */
    const kn_hiprtc_table *(*open)(void);
    int major; /* of its file's name: ROCm's */
} kn_hiprtc_real;

/* The one function of the core's for it. The table that answers from the cache, or NULL if the
 * cache cannot be used: the caller then goes on with the real library. Threads: once a process and
 * place. */
#define KN_INTERPOSE_HIPRTC "kn_interpose_hiprtc"
typedef const kn_hiprtc_table *kn_interpose_hiprtc_fn(const kn_hiprtc_real *real);

#endif
