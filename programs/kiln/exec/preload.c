/* See preload.h. */
#include "exec/preload.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "cli/host.h"
#include "kiln-interpose/mark.h"

const char *exec_preload_path(cli_pool *pool, const char *libraries, const char *library)
{
    const char *path = pool_format(pool, "%s/preload/" KN_PRELOAD_MARK "/$PLATFORM/%s", libraries,
                                   host_name_of(library));
    void *handle = path != NULL ? dlopen(path, RTLD_LAZY | RTLD_LOCAL) : NULL;
    if (handle == NULL) {
        return path != NULL ? library : NULL;
    }
    (void)dlclose(handle);
    return path;
}

/* The loader cuts the list at blanks, too, and a $ begins a token. */
static bool can_be_named(const char *libraries)
{
    return strpbrk(libraries, " \t\n$") == NULL;
}

bool exec_preload_add(cli_pool *pool, exec_environment *environment, const char *list)
{
    if (!can_be_named(environment->libraries)) {
        return true;
    }
    return exec_environment_append(pool, environment, "LD_PRELOAD", getenv("LD_PRELOAD"), list);
}
