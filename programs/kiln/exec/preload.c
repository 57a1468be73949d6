/* See preload.h. */
#include "exec/preload.h"

#include <dlfcn.h>
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

void exec_preload_add(exec_environment *environment, const char *list)
{
    /* The loader cuts the list at blanks, too, and a $ begins a token. */
    if (strpbrk(environment->libraries, " \t\n$") == NULL) {
        exec_environment_append(environment, "LD_PRELOAD", list);
    }
}
