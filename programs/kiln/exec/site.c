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

/* Below the program's own directory, and below that of the file it is a link to. */
static const char *const places[] = {"../lib/python3*/site-packages",
                                     "../local/lib/python3*/dist-packages",
                                     "../lib/python3/dist-packages"};
#define PLACES (sizeof(places) / sizeof(*places))

static void add_pattern(exec_sites *sites, char *pattern)
{
    if (pattern != NULL) {
        sites->patterns[sites->count++] = pattern;
    }
}

static void add_variable(cli_pool *pool, exec_sites *sites, const char *list)
{
    while (list != NULL && *list != '\0') {
        const size_t length = strcspn(list, ":");
        if (length > 0) {
            add_pattern(sites, pool_text(pool, list, length));
        }
        list += length + (list[length] != '\0');
    }
}

static size_t count_entries(const char *list)
{
    size_t count = 1;
    for (; list != NULL && *list != '\0'; list++) {
        count += *list == ':';
    }
    return count;
}

exec_sites exec_sites_list(cli_pool *pool, const char *program)
{
    exec_sites sites = {NULL, 0};
    char resolved[PATH_MAX];
    const char *list = getenv("PYTHONPATH");
    if (program != NULL) {
        sites.patterns =
            (char **)pool_array(pool, count_entries(list) + 2 * PLACES, sizeof(char *));
    }
    if (sites.patterns == NULL) {
        return sites;
    }
    add_variable(pool, &sites, list);
    const char *dirs[] = {host_dir_of(pool, program),
                          realpath(program, resolved) != NULL ? host_dir_of(pool, resolved) : NULL};
    for (size_t i = 0; i < PLACES; i++) {
        for (size_t j = 0; j < 2 && dirs[j] != NULL; j++) {
            char *pattern = pool_format(pool, "%s/%s", dirs[j], places[i]);
            const bool repeated = j > 0 && strcmp(dirs[0], dirs[1]) == 0;
            /* A pattern lists a directory as large as /usr/lib: one without a match does so once.
             */
            add_pattern(&sites, !repeated && match_pattern(pool, pattern) != NULL ? pattern : NULL);
        }
    }
    return sites;
}

char *exec_site_find(cli_pool *pool, const exec_sites *sites, const char *const *below,
                     size_t count)
{
    char *path = NULL;
    for (size_t i = 0; path == NULL && i < sites->count; i++) {
        for (size_t k = 0; path == NULL && k < count && below[k] != NULL; k++) {
            path = match_pattern(pool, pool_format(pool, "%s/%s", sites->patterns[i], below[k]));
        }
    }
    return path;
}
