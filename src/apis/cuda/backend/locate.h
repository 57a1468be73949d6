/* How a CUDA toolkit is found: locate.c looks into directories, places.c or places_windows.c says
 * what the files are called under the system and which directories are looked into. Nothing in the
 * current directory is ever used. */
#ifndef KILN_CUDA_BACKEND_LOCATE_H
#define KILN_CUDA_BACKEND_LOCATE_H

#include "apis/cuda/backend/instance.h"

enum { KN_CUDA_NVRTC, KN_CUDA_BUILTINS, KN_CUDA_NVJITLINK, KN_CUDA_LIBRARIES };

/* Reads the version in a name from the end of its prefix on. False: it is another file's name. */
typedef bool kn_cuda_read_fn(const char *text, int *major, int *minor);

/* The best name of a directory so far: the highest version after `prefix`. */
typedef struct kn_cuda_pick {
    const char *prefix;
    kn_cuda_read_fn *read;
    char name[128];
    int major, minor;
} kn_cuda_pick;

typedef struct kn_cuda_name_set {
    const char *prefixes[KN_CUDA_LIBRARIES]; /* of the files */
    const char *shown[KN_CUDA_LIBRARIES];    /* in messages */
    kn_cuda_read_fn *read;
    const char *dirs[5]; /* of an installation, with the libraries; NULL after the last */
    const char *nowhere; /* a directory that cannot be there, with a slash at its end */
} kn_cuda_name_set;

/* The system's. */
extern const kn_cuda_name_set kn_cuda_names;

/* "13.0", or "13"; not "13.0.1". */
bool kn_cuda_read_dotted(const char *text, int *major, int *minor);

/* A toolkit whose libraries lie in `dir`. */
bool kn_cuda_toolkit_in(const char *dir, kn_cuda_toolkit *toolkit);
/* An installation at `base`, which may be NULL. */
bool kn_cuda_toolkit_under(const char *base, kn_cuda_toolkit *toolkit);
/* The newest of the installations `prefix`VERSION in `dir`. */
bool kn_cuda_toolkit_numbered(const char *dir, const char *prefix, kn_cuda_toolkit *toolkit);
/* In the directory of a file; takes the path over, which may be NULL. */
bool kn_cuda_toolkit_next_to(char *file, kn_cuda_toolkit *toolkit);

#endif
