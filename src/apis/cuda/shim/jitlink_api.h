/* nvJitLink's functions as one table, which libnvJitLink.so.N of kiln (programs/kiln-interpose) and
 * its core agree on; see nvrtc_api.h. Each function has a name for every release that changed the
 * library's interface ("__nvJitLinkCreate_12_4"), and one without: `release` says which was called,
 * so that the real one of that name is. */
#ifndef KILN_CUDA_SHIM_JITLINK_API_H
#define KILN_CUDA_SHIM_JITLINK_API_H

#include <stddef.h>
#include <stdint.h>

typedef int nvJitLinkResult;
typedef struct nvJitLink *nvJitLinkHandle;

/* X(release): the suffixes; _0 has none. A library lacks those of later releases. */
#define KN_JITLINK_RELEASES(X)                                                                     \
    X(12_0)                                                                                        \
    X(12_1)                                                                                        \
    X(12_2)                                                                                        \
    X(12_3)                                                                                        \
    X(12_4)                                                                                        \
    X(12_5)                                                                                        \
    X(12_6)                                                                                        \
    X(12_7)                                                                                        \
    X(12_8)                                                                                        \
    X(12_9)                                                                                        \
    X(13_0)                                                                                        \
    X(13_1)                                                                                        \
    X(13_2)                                                                                        \
    X(13_3)                                                                                        \
    X(13_4)                                                                                        \
    X(13_5)

enum {
    KN_JITLINK_PLAIN = 0,
#define X(release) KN_JITLINK_##release,
    KN_JITLINK_RELEASES(X)
#undef X
        KN_JITLINK_RELEASE_COUNT
};

/* X(name): what can be asked for after a link, by its size and its bytes. */
#define KN_JITLINK_OUTPUTS(X)                                                                      \
    X(LinkedCubin)                                                                                 \
    X(LinkedPtx)                                                                                   \
    X(ErrorLog)                                                                                    \
    X(InfoLog)                                                                                     \
    X(LinkedLTOIR)

enum {
#define X(name) KN_JITLINK_##name,
    KN_JITLINK_OUTPUTS(X)
#undef X
        KN_JITLINK_OUTPUT_COUNT
};

/* The functions of one release; one that the library lacks is NULL. */
typedef struct kn_jitlink_calls {
    nvJitLinkResult (*create)(nvJitLinkHandle *handle, uint32_t count, const char *const *options);
    nvJitLinkResult (*destroy)(nvJitLinkHandle *handle);
    nvJitLinkResult (*add_data)(nvJitLinkHandle handle, int type, const void *data, size_t size,
                                const char *name);
    nvJitLinkResult (*add_file)(nvJitLinkHandle handle, int type, const char *file);
    nvJitLinkResult (*complete)(nvJitLinkHandle handle);
    nvJitLinkResult (*size[KN_JITLINK_OUTPUT_COUNT])(nvJitLinkHandle handle, size_t *size);
    nvJitLinkResult (*bytes[KN_JITLINK_OUTPUT_COUNT])(nvJitLinkHandle handle, void *bytes);
    nvJitLinkResult (*version)(unsigned *major, unsigned *minor); /* of KN_JITLINK_PLAIN alone */
} kn_jitlink_calls;

/* How the core reaches the nvJitLink that the program would have got. */
typedef struct kn_jitlink_real {
    const char *path; /* of its file */
    int major;
    /* Opens it, once; NULL if it cannot be opened. Threads: any. */
    const kn_jitlink_calls *(*open)(unsigned release);
} kn_jitlink_real;

/* What answers from the cache. Each function has the release that was called first. */
typedef struct kn_jitlink_table {
    nvJitLinkResult (*create)(unsigned release, nvJitLinkHandle *handle, uint32_t count,
                              const char *const *options);
    nvJitLinkResult (*destroy)(unsigned release, nvJitLinkHandle *handle);
    nvJitLinkResult (*add_data)(unsigned release, nvJitLinkHandle handle, int type,
                                const void *data, size_t size, const char *name);
    nvJitLinkResult (*add_file)(unsigned release, nvJitLinkHandle handle, int type,
                                const char *file);
    nvJitLinkResult (*complete)(unsigned release, nvJitLinkHandle handle);
    nvJitLinkResult (*size)(unsigned release, unsigned output, nvJitLinkHandle handle,
                            size_t *size);
    nvJitLinkResult (*bytes)(unsigned release, unsigned output, nvJitLinkHandle handle,
                             void *bytes);
    nvJitLinkResult (*version)(unsigned *major, unsigned *minor);
} kn_jitlink_table;

/* Exported by the core. NULL if the cache cannot be used. Threads: once a process. */
#define KN_INTERPOSE_JITLINK "kn_interpose_jitlink"
typedef const kn_jitlink_table *kn_interpose_jitlink_fn(const kn_jitlink_real *real);

#endif
