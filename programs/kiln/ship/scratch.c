/* See scratch.h. POSIX. */
#include "ship/scratch.h"

#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/diag.h"

kiln_status scratch_make(cli_pool *pool, const char **out_path, kiln_diag *diag)
{
    const char *parent = getenv("TMPDIR");
    char *path =
        pool_format(pool, "%s/kiln-XXXXXX", parent != NULL && parent[0] == '/' ? parent : "/tmp");
    *out_path = NULL;
    if (path == NULL) {
        return diag_no_memory(diag, "making a temporary directory");
    }
    if (mkdtemp(path) == NULL) {
        return kiln_diag_set(diag, KILN_E_IO, "set TMPDIR", path,
                             "cannot make a temporary directory: %s", strerror(errno));
    }
    *out_path = path;
    return KILN_OK;
}

kiln_status scratch_add(const char *path, kiln_diag *diag)
{
    return mkdir(path, 0700) == 0
               ? KILN_OK
               : kiln_diag_set(diag, KILN_E_IO, "set TMPDIR", path, "%s", strerror(errno));
}

static int remove_one(const char *path, const struct stat *facts, int kind, struct FTW *place)
{
    (void)facts;
    (void)kind;
    (void)place;
    (void)remove(path); /* what stays is a temporary file of this user's */
    return 0;
}

void scratch_remove(const char *path)
{
    enum { DESCRIPTORS = 16 };
    if (path != NULL) {
        (void)nftw(path, remove_one, DESCRIPTORS, FTW_DEPTH | FTW_PHYS);
    }
}
