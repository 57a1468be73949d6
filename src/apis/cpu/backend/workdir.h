/* A private temporary directory for one compile: made with a name nobody can guess, removed
 * whole. */
#ifndef KILN_CPU_BACKEND_WORKDIR_H
#define KILN_CPU_BACKEND_WORKDIR_H

#include <stddef.h>

#include "kiln/status.h"

/* *out_path is malloc'ed and absolute; remove takes it away with all that is in it, and frees it.
 * NULL is allowed there. */
kiln_status kn_cpu_workdir_create(char **out_path, kiln_diag *diag);
void kn_cpu_workdir_remove(char *path);

/* Writes a file below the directory, with the directories its name needs; `name` must be relative
 * and hold no "..", else KILN_E_INVALID. `*out_path` (may be NULL) is malloc'ed. */
kiln_status kn_cpu_workdir_write(const char *dir, const char *name, const void *data, size_t size,
                                 char **out_path, kiln_diag *diag);

#endif
