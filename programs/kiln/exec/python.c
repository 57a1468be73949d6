/* See python.h. */
#include "exec/python.h"

#include <stdlib.h>
#include <string.h>

#include "cli/host.h"
#include "exec/site.h"

void exec_python_add(exec_environment *environment)
{
    if (getenv("KILN_PYTHON") == NULL) {
        exec_environment_add(environment, "KILN_PYTHON", "1");
    }
}

static bool is_set(const char *variable)
{
    const char *value = getenv(variable);
    return value != NULL && *value != '\0';
}

/* A Python, or a script that names one in its first line: an entry point that a package installed.
 */
static bool is_python(const char *program)
{
    enum { FIRST_LINE = 256 };
    char *start = NULL;
    size_t size = 0;
    if (strncmp(host_name_of(program), "python", strlen("python")) == 0) {
        return true;
    }
    bool named = false;
    if (host_read_start(program, FIRST_LINE, &start, &size, NULL) == KILN_OK) {
        start[strcspn(start, "\n")] = '\0';
        named = strncmp(start, "#!", 2) == 0 && strstr(start, "python") != NULL;
    }
    free(start);
    return named;
}

/* The directory of a package that takes long to import, whose bytecode is not there and cannot be
 * written; NULL if there is none, or Python keeps bytecode elsewhere. */
static const char *find_unkept(cli_pool *pool, const char *program)
{
    static const char *const packages[] = {"torch", "jax", "triton", "cupy", "numba", "numpy"};
    const exec_sites sites = exec_sites_list(pool, program);
    for (size_t i = 0; i < sizeof(packages) / sizeof(*packages); i++) {
        const char *const package[] = {pool_format(pool, "%s/__init__.py", packages[i])};
        const char *const bytecode[] = {
            pool_format(pool, "%s/__pycache__/__init__.*.pyc", packages[i])};
        const char *found = exec_site_find(pool, &sites, package, 1);
        if (found == NULL || exec_site_find(pool, &sites, bytecode, 1) != NULL) {
            continue;
        }
        char *dir = host_dir_of(pool, found);
        char *cache = dir != NULL ? host_join(pool, dir, "__pycache__") : NULL;
        const char *place = cache != NULL && host_exists(cache) ? cache : dir;
        if (place != NULL && !(host_is_dir(place) && host_is_writable(place))) {
            return dir;
        }
    }
    return NULL;
}

const char *exec_python_bytecode(cli_pool *pool, const char *program)
{
    if (program != NULL && !is_python(program)) {
        return NULL;
    }
    if (is_set("PYTHONDONTWRITEBYTECODE")) {
        return "PYTHONDONTWRITEBYTECODE is set: Python compiles what it imports at every start, "
               "which costs PyTorch seconds (unset it, or compile when the image is built)";
    }
    if (program == NULL || is_set("PYTHONPYCACHEPREFIX")) {
        return NULL;
    }
    const char *dir = find_unkept(pool, program);
    return dir == NULL
               ? NULL
               : pool_format(pool,
                             "%s: its bytecode is not kept, since __pycache__ cannot be written: "
                             "Python compiles it at every start, which costs PyTorch seconds (run "
                             "python -m compileall when the image is built, or set "
                             "PYTHONPYCACHEPREFIX to a directory that lasts)",
                             dir);
}
