/* What is to be compiled: one kernel source in one language, and how.
 *
 * A source is a plain struct of borrowed pointers; kiln reads it during the call and keeps nothing.
 * Zero it first (KILN_SOURCE_INIT) so that later versions can add fields. */
#ifndef KILN_SOURCE_H
#define KILN_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "kiln/device.h"
#include "kiln/export.h"
#include "kiln/status.h"

KILN_BEGIN_DECLS

/* A preprocessor definition. A NULL value defines the name as 1, as -DNAME does. */
typedef struct kiln_define {
    const char *name;
    const char *value;
} kiln_define;

/* A header held in memory, found by the exact name written between the quotes or brackets. */
typedef struct kiln_header {
    const char *name;
    const char *text;
    size_t length;
} kiln_header;

struct kiln_cpu_kernel; /* kiln/cpu.h */

/* One source in one language. Begin with KILN_SOURCE_INIT. */
typedef struct kiln_source {
    size_t struct_size;
    kiln_language language;
    const char
        *name; /* shown in messages; with a '/' in it, its directory is the first include dir */
    const void *text; /* or the bytes of SPIR-V, PTX, ...; NULL for KILN_LANG_BUILTIN */
    size_t length;
    const kiln_define *defines;
    size_t define_count;
    const char *const *options; /* passed to the compiler in this order */
    size_t option_count;
    const char *const *include_dirs; /* searched in this order */
    size_t include_dir_count;
    const kiln_header *headers;
    size_t header_count;
    const char *const *entries; /* kernels that must be there, or name expressions; may be empty */
    size_t entry_count;
    const struct kiln_cpu_kernel *const *builtin; /* KILN_LANG_BUILTIN: kernels in the program */
    size_t builtin_count;
} kiln_source;

#define KILN_SOURCE_INIT                                                                           \
    {                                                                                              \
        sizeof(kiln_source), KILN_LANG_NONE, NULL, NULL, 0, NULL, 0, NULL, 0, NULL, 0, NULL, 0,    \
            NULL, 0, NULL, 0                                                                       \
    }

KILN_END_DECLS

#endif
