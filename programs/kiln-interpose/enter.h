/* What kiln's libraries in the place of others share: the way into the core. Links libc alone. */
#ifndef KILN_INTERPOSE_ENTER_H
#define KILN_INTERPOSE_ENTER_H

#include <stdbool.h>

/* The address of a function of the core's, which is opened; NULL if it cannot be, or if
 * KILN_DISABLE is set. Threads: any. Blocks: disk. */
void *kn_enter_core(const char *function);

/* dlopen(3) of a path, with names that are bound at once and local; also where the program has no
 * descriptor left. NULL if it cannot be opened. Threads: any. Blocks: disk. */
void *kn_enter_library(const char *path);

#endif
