/* The interposed libraries as a table; libraries.def has the rows. Everything is in this header:
 * shims and the auditor link libc alone. The texts are arrays, which need no relocation where a
 * shim is preloaded. */
#ifndef KILN_COMPILERS_LIBRARIES_H
#define KILN_COMPILERS_LIBRARIES_H

#include <stdbool.h>
#include <string.h>

typedef enum kn_library_id {
#define KN_LIBRARY(id, variable, ...) KN_LIBRARY_##id,
#include "compilers/libraries.def"
#undef KN_LIBRARY
    KN_LIBRARIES,
} kn_library_id;

typedef struct kn_library {
    char id[12], variable[12], stem[16], shim[16];
    int first, last;
    char api[12], prefix[12], needs[24], wheel[12], name[16];
} kn_library;

static const kn_library kn_libraries[KN_LIBRARIES] = {
#define KN_LIBRARY(id, variable, stem, shim, first, last, api, prefix, needs, wheel, name, ...)    \
    {#id, #variable, stem, shim, first, last, api, prefix, needs, wheel, name},
#include "compilers/libraries.def"
#undef KN_LIBRARY
};

/* Whether kiln's library has the name of the real one, and is found in its place. */
static inline bool kn_library_keeps_name(const kn_library *library)
{
    return strcmp(library->stem, library->shim) == 0;
}

/* NULL: none has this id. */
static inline const kn_library *kn_library_find(const char *id)
{
    for (int i = 0; i < KN_LIBRARIES; i++) {
        if (strcmp(kn_libraries[i].id, id) == 0) {
            return &kn_libraries[i];
        }
    }
    return NULL;
}

#endif
