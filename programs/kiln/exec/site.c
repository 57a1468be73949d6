/* See site.h. */
#include "exec/site.h"

#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cli/host.h"

static char *match_pattern(cli_pool *pool, const char *pattern)
{
    glob_t found;
    char *path = NULL;
    if (pattern != NULL && glob(pattern, 0, NULL, &found) == 0) {
        path = found.gl_pathc > 0 ? pool_text(pool, found.gl_pathv[0], strlen(found.gl_pathv[0]))
                                  : NULL;
        globfree(&found);
    }
    return path;
}

/* `site` may be a pattern. */
static char *find_in_site(cli_pool *pool, const char *site, size_t length, const char *const *below,
                          size_t count)
{
    char *path = NULL;
    for (size_t i = 0; path == NULL && i < count && below[i] != NULL; i++) {
        path = match_pattern(pool, pool_format(pool, "%.*s/%s", (int)length, site, below[i]));
    }
    return path;
}

static char *find_in_list(cli_pool *pool, const char *list, const char *const *below, size_t count)
{
    char *path = NULL;
    while (path == NULL && list != NULL && *list != '\0') {
        const size_t length = strcspn(list, ":");
        path = length > 0 ? find_in_site(pool, list, length, below, count) : NULL;
        list += length + (list[length] != '\0');
    }
    return path;
}

char *exec_site_find(cli_pool *pool, const char *program, const char *const *below, size_t count)
{
    static const char *const sites[] = {"../lib/python3*/site-packages",
                                        "../local/lib/python3*/dist-packages",
                                        "../lib/python3/dist-packages"};
    char resolved[PATH_MAX];
    if (program == NULL) {
        return NULL;
    }
    char *path = find_in_list(pool, getenv("PYTHONPATH"), below, count);
    for (size_t i = 0; path == NULL && i < sizeof(sites) / sizeof(*sites); i++) {
        const char *folders[] = {host_folder_of(pool, program), realpath(program, resolved) != NULL
                                                                    ? host_folder_of(pool, resolved)
                                                                    : NULL};
        for (size_t j = 0; path == NULL && j < 2 && folders[j] != NULL; j++) {
            char *site = pool_format(pool, "%s/%s", folders[j], sites[i]);
            path = site != NULL ? find_in_site(pool, site, strlen(site), below, count) : NULL;
        }
    }
    return path;
}
