/* What each system's dylib.c gives to dylib_open.c. For src/sys alone. */
#ifndef KILN_SYS_DYLIB_SYSTEM_H
#define KILN_SYS_DYLIB_SYSTEM_H

#include "sys/dylib.h"

struct kn_dylib {
    void *handle;
    char *path;
    bool temporary; /* Windows: the file is kiln's, and goes with the library */
};

/* What is known about the failure so far; an unusable library says more than a missing one. */
typedef struct kn_dylib_failure {
    kiln_probe_outcome outcome;
    char file[1024]; /* "": none was found */
    char why[768];
    char fix[512];
} kn_dylib_failure;

/* The system's handle; NULL, and what is known about it, unless more is known already. */
void *kn_dylib_load(const char *name, bool apart, kn_dylib_failure *failure);
void kn_dylib_unload(void *handle);
/* The path of the file that was mapped, or the name; malloc'ed. */
char *kn_dylib_mapped_path(void *handle, const char *name);

void kn_dylib_set_unusable(kn_dylib_failure *failure, const char *file, const char *why,
                           const char *fix);

#endif
