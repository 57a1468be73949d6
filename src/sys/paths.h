/* Well-known places: the cache root, temporary folder, the program's own file. */
#ifndef KILN_SYS_PATHS_H
#define KILN_SYS_PATHS_H

#include <stddef.h>

#include "kiln/status.h"

/* The cache root by DESIGN section 6: $KILN_CACHE_DIR, $XDG_CACHE_HOME/kiln, ~/.cache/kiln,
 * <tmp>/kiln-<uid>. malloc'ed. A relative $KILN_CACHE_DIR is KILN_E_INVALID; a relative
 * $XDG_CACHE_HOME is ignored, as the XDG specification says. */
kiln_status kn_paths_cache_root(char **out_path, kiln_diag *diag);

/* Makes the root (0700) and refuses one that is a link, belongs to another user, or is writable by
 * others: KILN_E_UNAVAILABLE with the reason. Works as root, too, and checks the folder it opened.
 */
kiln_status kn_paths_claim_root(const char *path, kiln_diag *diag);

/* The temporary folder ($TMPDIR or /tmp), and the path of the module this code is in; malloc'ed or
 * NULL. */
char *kn_paths_temporary(void);
char *kn_paths_own_module(void);

/* A program by name on $PATH, absolute; malloc'ed, or NULL. */
char *kn_paths_find_program(const char *name);

#endif
