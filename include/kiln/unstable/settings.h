/* The settings that a user gives kiln from outside a program: what they are called, what they are
 * set to, and where (docs/reference/environment.md). */
#ifndef KILN_UNSTABLE_SETTINGS_H
#define KILN_UNSTABLE_SETTINGS_H

#include "kiln/status.h"

KILN_BEGIN_DECLS

/* One of them. The struct and its strings are the library's. */
typedef struct kiln_setting {
    size_t struct_size;
    const char *name;   /* of the variable: "KILN_CACHE_DIR" */
    const char *value;  /* NULL: not set, and kiln's own choice holds */
    const char *origin; /* "environment"; "" without a value */
} kiln_setting;

/* Called for each setting; any status but KILN_OK ends the walk and is returned by it. */
typedef kiln_status kiln_setting_fn(void *user, const kiln_setting *setting);

/* Shows every setting that there is, in the order of the documentation.
 * Threads: any, while nobody changes the environment.   Blocks: never.
 * Owns: `setting` is borrowed for the call.   Fails: what `visit` returns. */
KILN_API KILN_MUST_CHECK kiln_status kiln_settings_walk(kiln_setting_fn *visit, void *user);

KILN_END_DECLS

#endif
