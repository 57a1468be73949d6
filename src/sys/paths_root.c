/* Which directory is the cache's root, and where this module is; see paths.h. The same on every
 * system. */
#include <stdlib.h>

#include "base/text.h"
#include "sys/dylib.h"
#include "sys/env.h"
#include "sys/fail.h"
#include "sys/paths.h"
#include "sys/paths_system.h"

#define MAX_PATH_TEXT 4096

const char *kn_paths_variable(const char *name)
{
    const char *value = kn_env_get(name);
    return value != NULL && kn_path_is_absolute(value) ? value : NULL;
}

kiln_status kn_paths_cache_root(char **out_path, kiln_diag *diag)
{
    char *path = NULL;
    *out_path = NULL;
    const char *chosen = kn_env_get("KILN_CACHE_DIR");
    const char *caches = kn_paths_variable("XDG_CACHE_HOME");
    if (chosen != NULL && chosen[0] != '\0') {
        if (!kn_path_is_absolute(chosen)) {
            return kiln_diag_set(diag, KILN_E_INVALID, "set KILN_CACHE_DIR to an absolute path",
                                 "environment variable KILN_CACHE_DIR", "\"%s\" is a relative path",
                                 chosen);
        }
        path = kn_text_copy(chosen);
    } else {
        path = caches != NULL ? kn_path_join(caches, "kiln") : kn_paths_default_root();
    }
    if (path == NULL) {
        return kn_fail_nomem(diag, "cannot find", "the cache directory");
    }
#ifdef _WIN32
    for (char *at = path; *at != '\0'; at++) {
        *at = *at == '\\' ? '/' : *at; /* one kind in what is printed */
    }
#endif
    *out_path = path;
    return KILN_OK;
}

kiln_status kn_paths_claim_root(const char *path, kiln_diag *diag)
{
    if (!kn_path_is_absolute(path)) {
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE, KN_CHOOSE_ANOTHER, path,
                             "the cache directory is not an absolute path");
    }
    char *copy = kn_text_copy(path);
    if (copy == NULL) {
        return kn_fail_nomem(diag, "cannot open cache directory", path);
    }
    kiln_status status = kn_paths_claim(copy, diag);
    free(copy);
    return status;
}

char *kn_paths_own_module(void)
{
    static const char marker = 0; /* any address in this module */
    char path[MAX_PATH_TEXT];
    char build_id[8];
    if (!kn_module_of_address(&marker, path, sizeof path, build_id, sizeof build_id)) {
        return NULL;
    }
    return kn_text_copy(path);
}
