/* NVRTC's functions as one table: the real library's, and the one that answers from the cache. It
 * is what libnvrtc.so.N of kiln (programs/kiln-interpose) and its core agree on; they are built and
 * installed together. This file must not include anything of kiln's library: the library that is
 * preloaded into every process links nothing but libc. */
#ifndef KILN_CUDA_SHIM_NVRTC_API_H
#define KILN_CUDA_SHIM_NVRTC_API_H

#include <stddef.h>

typedef int nvrtcResult;
typedef void *nvrtcProgram;

typedef struct kn_nvrtc_table {
#define X(name, parameters, arguments) nvrtcResult(*name) parameters;
#include "apis/cuda/shim/nvrtc_calls.def"
#undef X
    const char *(*nvrtcGetErrorString)(nvrtcResult result);
    /* Of the one that answers from the cache: called before the real library is loaded. Else NULL.
     */
    void (*note_loading)(void);
} kn_nvrtc_table;

/* How the core reaches the NVRTC that the program would have got. */
typedef struct kn_nvrtc_real {
    const char *path; /* of its file */
    int major;
    /* Opens it, once; NULL if it cannot be opened. A member that this version lacks is NULL.
     * Threads: any. */
    const kn_nvrtc_table *(*open)(void);
} kn_nvrtc_real;

/* The one function that the core exports. The table that answers from the cache, or NULL if the
 * cache cannot be used: the caller then goes on with the real library. Threads: once a process. */
#define KN_INTERPOSE_NVRTC "kn_interpose_nvrtc"
typedef const kn_nvrtc_table *kn_interpose_nvrtc_fn(const kn_nvrtc_real *real);

#endif
