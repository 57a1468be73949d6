/* Paths for tests; see tmpdir.h. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/tmpdir.h"

typedef struct kept_path {
    struct kept_path *next; /* so that leak checkers find it */
    char text[];
} kept_path;

static _Atomic(kept_path *) kept_paths;

char *kt_path(const char *dir, const char *name)
{
    const size_t size = strlen(dir) + strlen(name) + 2;
    char *path = malloc(size);
    if (path == NULL) {
        abort();
    }
    (void)snprintf(path, size, "%s/%s", dir, name);
    return path;
}

char *kt_at(const char *dir, const char *name)
{
    const size_t size = strlen(dir) + strlen(name) + 2;
    kept_path *path = malloc(sizeof *path + size);
    if (path == NULL) {
        abort();
    }
    (void)snprintf(path->text, size, "%s/%s", dir, name);
    path->next = atomic_load(&kept_paths);
    while (!atomic_compare_exchange_weak(&kept_paths, &path->next, path)) {
    }
    return path->text;
}
