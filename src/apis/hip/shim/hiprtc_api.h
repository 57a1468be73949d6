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
    void (*note_loading)(void); /* NULL */
} kn_hiprtc_table;

/* How the core reaches the hipRTC that the program would have got. */
typedef struct kn_hiprtc_real {
    const char *path; /* of its file */
    int major;        /* of its file's name: ROCm's */
    /* Opens it, once; NULL if it cannot be opened. A member that this version lacks is NULL.
     * Threads: any. */
    const kn_hiprtc_table *(*open)(void);
} kn_hiprtc_real;

/* The core's functions for it. hipRTC is a library of its own (libhiprtc.so.N), and `inside` HIP's
 * runtime (libamdhip64.so.N) up to ROCm 6: a program may use both. The table that answers from the
 * cache, or NULL if the cache cannot be used: the caller then goes on with the real library.
 * Threads: once a process and function. */
#define KN_INTERPOSE_HIPRTC(inside)                                                                \
    ((inside) ? "kn_interpose_hiprtc_inside" : "kn_interpose_hiprtc")
typedef const kn_hiprtc_table *kn_interpose_hiprtc_fn(const kn_hiprtc_real *real);

#endif
