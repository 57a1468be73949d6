/* What each system's paths.c gives to paths_root.c, and takes from it. For src/sys alone. */
#ifndef KILN_SYS_PATHS_SYSTEM_H
#define KILN_SYS_PATHS_SYSTEM_H

#include "kiln/status.h"

#define KN_CHOOSE_ANOTHER "set KILN_CACHE_DIR to a directory of your own"

/* The variable's value if it is an absolute path. */
const char *kn_paths_variable(const char *name);

/* The root where no variable of kiln's or XDG's names one; malloc'ed, NULL when out of memory. */
char *kn_paths_default_root(void);
/* kn_paths_claim_root of an absolute path, which it may change. */
kiln_status kn_paths_claim(char *path, kiln_diag *diag);

#endif
