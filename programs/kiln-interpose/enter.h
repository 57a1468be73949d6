/* What kiln's libraries in the place of others share: the way into the core. Links libc alone. */
#ifndef KILN_INTERPOSE_ENTER_H
#define KILN_INTERPOSE_ENTER_H

#include <stdbool.h>

/* Whether KILN_DISABLE takes kiln out. */
bool kn_is_disabled(void);

/* The address of a function of the core's, which is opened; NULL if it cannot be, or if
 * KILN_DISABLE is set. A core that cannot be opened is a line in $KILN_EXEC_REPORT, and on standard
 * error where KILN_LOG asks for warnings. Threads: any. Blocks: disk. */
void *kn_enter_core(const char *function);

/* Appends a line to $KILN_EXEC_REPORT, if that is set: `event` is its first two fields. Threads:
 * any. Blocks: disk. Fails: never. */
void kn_enter_report(const char *event, const char *name, const char *reason);

/* Notes the code that called first in *first, for which the real library is then looked for. Any of
 * several first callers will do. Threads: any. */
void kn_enter_caller(const void *_Atomic *first, const void *caller);

/* dlopen(3) of a path, with names that are bound at once and local; also where the program has no
 * descriptor left. NULL if it cannot be opened. Threads: any. Blocks: disk. */
void *kn_enter_library(const char *path);

#endif
