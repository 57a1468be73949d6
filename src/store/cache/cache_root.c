/* Where a cache lies: its root, or a namespace below it. Each namespace is a root of its own with
 * everything that a root has, so that limits, eviction and counters need not know of namespaces. */
#include "store/cache/cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "key/recipe.h"
#include "sys/fail.h"
#include "sys/file.h"
#include "sys/paths.h"

#define NAMESPACES "namespaces"

bool kn_cache_namespace_valid(const char *name)
{
    return name == NULL || name[0] == '\0' || (kn_name_valid(name) && name[0] != '.');
}

/* A process may hand the directory of its cache and KILN_NAMESPACE to a child. `dir` is that
 * of the root. */
static bool is_namespace_root(const char *root, const char *dir, const char *name)
{
    return strcmp(kn_path_name(root), name) == 0 && strcmp(kn_path_name(dir), NAMESPACES) == 0;
}

/* Puts the namespace's directory in the place of its root's. The root is claimed first: what lies
 * in a directory that others may write is not to be trusted. */
static kiln_status enter_namespace(const char *name, char **root, kiln_diag *diag)
{
    char below[sizeof NAMESPACES + KN_NAME_SIZE];
    char *path = NULL;
    kiln_status status = KILN_OK;
    char *dir = kn_path_dir(*root);
    if (dir == NULL) {
        return kn_fail_nomem(diag, "cannot open namespace", name);
    }
    if (!is_namespace_root(*root, dir, name)) {
        kn_text_putf(below, sizeof below, NAMESPACES "/%s", name);
        path = kn_path_join(*root, below);
        status = path != NULL ? kn_paths_claim_root(*root, diag)
                              : kn_fail_nomem(diag, "cannot open namespace", name);
    }
    if (status == KILN_OK && path != NULL) {
        free(*root);
        *root = path;
        path = NULL;
    }
    free(path);
    free(dir);
    return status;
}

static kiln_status refuse_to_make(const char *root, kiln_diag *diag)
{
    kn_file_facts facts;
    return kn_file_stat(root, false, &facts, NULL) != KILN_MISS
               ? KILN_OK
               : kiln_diag_set(diag, KILN_E_UNAVAILABLE, "fill it first, or unset KILN_READONLY",
                               root, "no such directory, and a read-only cache creates none");
}

kiln_status kn_cache_find_root(const kiln_cache_options *options, char **out_root, kiln_diag *diag)
{
    const bool may_make = (options->flags & KILN_CACHE_READONLY) == 0;
    const char *name = options->name_space;
    kiln_status status = KILN_OK;
    char *root = NULL;
    if (options->root != NULL) {
        root = kn_text_copy(options->root);
        status = root != NULL ? KILN_OK : KILN_E_NOMEM;
    } else {
        status = kn_paths_cache_root(&root, diag);
    }
    if (status == KILN_OK && !may_make) {
        status = refuse_to_make(root, diag);
    }
    if (status == KILN_OK && name != NULL && name[0] != '\0') {
        status = enter_namespace(name, &root, diag);
        if (status == KILN_OK && !may_make) {
            status = refuse_to_make(root, diag);
        }
    }
    if (status == KILN_OK) {
        status = kn_paths_claim_root(root, diag);
    }
    if (status != KILN_OK) {
        free(root);
        return status;
    }
    *out_root = root;
    return KILN_OK;
}

typedef struct namespace_walk {
    const char *dir;
    kiln_namespace_fn *visit;
    void *user;
} namespace_walk;

static kiln_status visit_namespace(void *user, const char *name)
{
    const namespace_walk *walk = user;
    kn_file_facts facts;
    char *path = kn_path_join(walk->dir, name);
    if (path == NULL) {
        return KILN_E_NOMEM;
    }
    const bool good = kn_name_valid(name) && name[0] != '.' &&
                      kn_file_stat(path, false, &facts, NULL) == KILN_OK &&
                      facts.kind == KN_FILE_DIR;
    free(path);
    return good ? walk->visit(walk->user, name) : KILN_OK;
}

kiln_status kiln_cache_walk_namespaces(kiln_cache *cache, kiln_namespace_fn *visit, void *user,
                                       kiln_diag *diag)
{
    if (cache->root[0] == '\0') {
        return KILN_OK;
    }
    char *dir = kn_path_join(cache->root, NAMESPACES);
    if (dir == NULL) {
        return kn_fail_nomem(diag, "cannot list namespaces of", cache->root);
    }
    namespace_walk walk = {dir, visit, user};
    kiln_status status = kn_file_list(dir, visit_namespace, &walk, diag);
    free(dir);
    return status == KILN_MISS ? KILN_OK : status;
}
