/* How a failed system call becomes a status and a diag. For src/sys alone. */
#ifndef KILN_SYS_FAIL_H
#define KILN_SYS_FAIL_H

#include "kiln/status.h"

/* Fills the diag with "<verb> <object>: <the system's words> (<what helps>)" and the errno; returns
 * `status`. */
kiln_status kn_fail(kiln_diag *diag, kiln_status status, int error, const char *verb,
                    const char *object);
/* Of a file: KILN_MISS (no diag) where the error means that there is none, else KILN_E_IO. */
kiln_status kn_fail_or_miss(kiln_diag *diag, int error, const char *verb, const char *object);
kiln_status kn_fail_nomem(kiln_diag *diag, const char *verb, const char *object);

#endif
