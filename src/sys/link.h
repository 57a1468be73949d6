/* Symbolic links: a second name for a directory whose own name cannot be used. */
#ifndef KILN_SYS_LINK_H
#define KILN_SYS_LINK_H

#include "kiln/status.h"

/* Makes `path` a link to `target` (absolute, or relative to the caller's working directory).
 * KILN_E_UNSUPPORTED where the system has no links for everybody. Remove with kn_file_remove. */
kiln_status kn_link_create(const char *target, const char *path, kiln_diag *diag);

#endif
