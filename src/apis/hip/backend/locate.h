/* Where ROCm's libraries lie and what they are called: the system's half (places.c, on Windows
 * places_windows.c), and what it needs of the other (locate.c). */
#ifndef KILN_HIP_BACKEND_LOCATE_H
#define KILN_HIP_BACKEND_LOCATE_H

#include "apis/hip/backend/instance.h"

typedef enum kn_hip_kind {
    KN_HIP_RTC,           /* hipRTC in a library of its own */
    KN_HIP_WHOLE_RUNTIME, /* a runtime with hipRTC in it */
    KN_HIP_BUILTINS,      /* hipRTC's headers */
    KN_HIP_RUNTIME,       /* HIP's runtime */
    KN_HIP_COMGR,         /* the compiler under hipRTC, where a bare name might not find it */
    KN_HIP_KINDS
} kn_hip_kind;

typedef struct kn_hip_name_set {
    /* The version that a file's name says; 0 where it is not one of this kind. */
    uint64_t (*read)(kn_hip_kind kind, const char *name);
    const char *comgr;    /* what the name of the compiler under hipRTC begins with */
    const char *no_comgr; /* what to do without it */
    /* Decide, with the files themselves, which libraries a name finds; the last one is NULL. */
    const char *const *loader_variables;
    const char *loader_cache;                   /* "": there is no such file */
    const char *missing, *install, *no_runtime; /* for messages */
} kn_hip_name_set;

extern const kn_hip_name_set kn_hip_names;

/* In locate.c. Fill hip->library, hip->builtins and hip->runtime from an absolute directory, from
 * `dir` below `base` (which may be NULL); the third only the runtime. False, and nothing is
 * filled, where hipRTC (the runtime) is not there. */
bool kn_hip_look_in(kn_hip *hip, const char *directory);
bool kn_hip_look_under(kn_hip *hip, const char *base, const char *dir);
bool kn_hip_look_for_runtime(kn_hip *hip, const char *directory);

#endif
