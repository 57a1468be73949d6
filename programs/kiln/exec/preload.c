/* See preload.h. */
#include "exec/preload.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "cli/host.h"
#include "exec/exports.h"

const char *exec_preload_path(cli_pool *pool, const char *libraries, const char *library)
{
    const char *path =
        pool_format(pool, "%s/preload/$PLATFORM/%s", libraries, host_name_of(library));
    void *handle = path != NULL ? dlopen(path, RTLD_LAZY | RTLD_LOCAL) : NULL;
    if (handle == NULL) {
        return path != NULL ? library : NULL;
    }
    (void)dlclose(handle);
    return path;
}

/* The last value of an option counts. */
static bool add_sanitizer_options(cli_pool *pool, exec_environment *environment)
{
    const char *program = environment->program;
    const char *options = getenv("ASAN_OPTIONS");
    if (program == NULL || !exec_exports_have(program, "__asan_default_options")) {
        return true;
    }
    const bool has_options = options != NULL && options[0] != '\0';
    return exec_environment_add(environment, "ASAN_OPTIONS",
                                pool_format(pool, "%s%sverify_asan_link_order=0",
                                            has_options ? options : "", has_options ? ":" : ""));
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
    return exec_environment_append(pool, environment, "LD_PRELOAD", getenv("LD_PRELOAD"), list) &&
           add_sanitizer_options(pool, environment);
}
