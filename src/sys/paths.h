/* Well-known places: the cache root, temporary directory, the program's own file. The cache root
 * and the own module are in paths_root.c. */
#ifndef KILN_SYS_PATHS_H
#define KILN_SYS_PATHS_H

#include <stddef.h>

#include "kiln/status.h"

#include "sys/file.h"

/* The cache root by DESIGN section 6: $KILN_CACHE_DIR, $XDG_CACHE_HOME/kiln, ~/.cache/kiln,
 * <tmp>/kiln-<uid>. malloc'ed. A relative $KILN_CACHE_DIR is KILN_E_INVALID; a relative
 * $XDG_CACHE_HOME is ignored, as the XDG specification says. The home is $HOME, else the one in the
 * password database; either counts only if it is a directory of this user's (sudo leaves another's
 * in $HOME; service accounts have none). */
kiln_status kn_paths_cache_root(char **out_path, kiln_diag *diag);

/* Makes the root (0700) and refuses one that is a link, is reached through another user's link,
 * belongs to another user, or is writable by others: KILN_E_UNAVAILABLE with the reason, also when
 * it cannot be made. Works as root, too, and checks the directory it opened. */
kiln_status kn_paths_claim_root(const char *path, kiln_diag *diag);

/* The temporary directory ($TMPDIR or /tmp), and the path of the module this code is in; malloc'ed
 * or NULL. */
char *kn_paths_temporary(void);
char *kn_paths_own_module(void);
/* The file that this process runs; malloc'ed or NULL. */
char *kn_paths_own_program(void);

/* One of kiln's own helper programs (kiln-probe, kiln-nvrtc): in $KILN_LIBEXEC, where this module's
 * installation has it, or in its build tree; malloc'ed, or NULL. */
char *kn_paths_helper(const char *name);

/* The file of a module: KN_MODULE_FILE("redis"). */
#ifdef _WIN32
#define KN_MODULE_FILE(name) "libkiln-" name ".dll"
#else
#define KN_MODULE_FILE(name) "libkiln-" name ".so"
#endif

/* One of kiln's own modules by its file, found in the same places; malloc'ed, or NULL. */
char *kn_paths_module(const char *name);

/* A program by name on $PATH, absolute; malloc'ed, or NULL. */
char *kn_paths_find_program(const char *name);

/* Several of them in one walk of $PATH, in which a directory that is named twice is looked at
 * once. */
typedef struct kn_program {
    const char *name;
    char *path;          /* as kn_paths_find_program gives it; yours */
    kn_file_facts facts; /* of what was found there, links followed */
} kn_program;

void kn_paths_find_programs(kn_program *programs, size_t count);

#endif
