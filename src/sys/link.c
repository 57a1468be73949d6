/* Symbolic links, by the system's own call. */
#include "sys/link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "sys/file.h"

kiln_status kn_link_create(const char *target, const char *path, kiln_diag *diag)
{
    char *whole = NULL;
    if (!kn_path_is_absolute(target)) {
        char *dir = realpath(".", NULL);
        whole = dir != NULL ? kn_path_join(dir, target) : NULL;
        free(dir);
        if (whole == NULL) {
            return kn_no_memory(diag, "linking to a directory");
        }
    }
    kiln_status status = KILN_OK;
    if (symlink(whole != NULL ? whole : target, path) != 0) {
        int code = errno;
        status = kiln_diag_set(diag, KILN_E_IO, NULL, "linking to a directory", "%s -> %s: %s",
                               path, target, strerror(code));
        kiln_diag_set_vendor_code(diag, code);
    }
    free(whole);
    return status;
}
