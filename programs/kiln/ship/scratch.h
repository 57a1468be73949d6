/* A temporary directory that goes with all that is in it. */
#ifndef KILN_PROGRAM_SHIP_SCRATCH_H
#define KILN_PROGRAM_SHIP_SCRATCH_H

#include <kiln/status.h>

#include "cli/pool.h"

/* Makes one below $TMPDIR, else /tmp; *out_path is of the pool. KILN_E_IO. */
kiln_status scratch_make(cli_pool *pool, const char **out_path, kiln_diag *diag);
/* Makes a directory in it. KILN_E_IO. */
kiln_status scratch_add(const char *path, kiln_diag *diag);
/* Removes it as far as that works; NULL is allowed. */
void scratch_remove(const char *path);

#endif
