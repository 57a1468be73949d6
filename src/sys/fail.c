/* The words for failed system calls; see fail.h. */
#include "sys/fail.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "sys/facts.h"

static const char *fix_for(int error)
{
    switch (error) {
    case ENOSPC:
    case EDQUOT:
        return "free some space there, or choose a directory on another file system";
    case EFBIG:
        return "raise the limit on the size of files (ulimit -f)";
    case EACCES:
    case EPERM:
        return "check the owner and the permissions of it and of the directories above it";
    case EROFS:
        return "choose a directory that can be written to";
    case EMFILE:
    case ENFILE:
        return "raise the limit on open files (ulimit -n)";
    case ENAMETOOLONG:
        return "use a shorter path";
    case EBUSY:
        return "choose another name, if something is mounted there";
    case EXDEV:
        return "keep both on one file system";
    default:
        return NULL;
    }
}

kiln_status kn_fail(kiln_diag *diag, kiln_status status, int error, const char *verb,
                    const char *object)
{
    if (diag == NULL) {
        return status;
    }
    char what[sizeof diag->what];
    kn_text_putf(what, sizeof what, "%s %s", verb, object);
    /* strerror of glibc and musl keeps no shared buffer for known numbers. */
    (void)kiln_diag_set(diag, status, fix_for(error), what, "%s", strerror(error));
    kiln_diag_set_vendor_code(diag, error);
    return status;
}

bool kn_means_missing(int error)
{
    return error == ENOENT || error == ENOTDIR || error == ESTALE;
}

kiln_status kn_fail_or_miss(kiln_diag *diag, int error, const char *verb, const char *object)
{
    return kn_means_missing(error) ? KILN_MISS : kn_fail(diag, KILN_E_IO, error, verb, object);
}

kiln_status kn_fail_nomem(kiln_diag *diag, const char *verb, const char *object)
{
    return kn_fail(diag, KILN_E_NOMEM, ENOMEM, verb, object);
}
