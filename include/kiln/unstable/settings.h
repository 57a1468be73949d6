/* The settings that a user gives kiln from outside a program: what they are called, what they are
 * set to, and where (docs/reference/environment.md). */
#ifndef KILN_UNSTABLE_SETTINGS_H
#define KILN_UNSTABLE_SETTINGS_H

#include <stdbool.h>

#include "kiln/status.h"

KILN_BEGIN_DECLS

/* One of them. The struct and its strings are the library's. */
typedef struct kiln_setting {
    size_t struct_size;
    const char *name;   /* of the variable: "KILN_CACHE_DIR" */
    const char *value;  /* NULL: not set, and kiln's own choice holds */
    const char *origin; /* "environment", or the path of a file; "" without a value */
    unsigned line;      /* of that file; 0: of none */
    bool locked;        /* neither the environment nor the user's file can change it */
} kiln_setting;

/* Called for each setting; any status but KILN_OK ends the walk and is returned by it. */
typedef kiln_status kiln_setting_fn(void *user, const kiln_setting *setting);

/* Shows every setting that there is, in the order of the documentation.
 * Threads: any, while nobody changes the environment.   Blocks: never.
 * Owns: `setting` is borrowed for the call.   Fails: what `visit` returns. */
KILN_API KILN_MUST_CHECK kiln_status kiln_settings_walk(kiln_setting_fn *visit, void *user);

/* Shows the configuration files that kiln looks for, the system's first: whether there is one, and
 * why it, or the first of its lines that is, is not used ("": it is). They are read once in a
 * process.
 * Threads: any.   Blocks: disk, the first time.
 * Owns: texts are borrowed for the call.   Fails: what `visit` returns. */
typedef kiln_status kiln_setting_file_fn(void *user, const char *path, bool present,
                                         const char *trouble);
KILN_API KILN_MUST_CHECK kiln_status kiln_settings_files(kiln_setting_file_fn *visit, void *user);

KILN_END_DECLS

#endif
