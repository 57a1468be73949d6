/* Small files that hold a secret, or say who is believed: who else may read or change them counts
 * as much as what they say. */
#ifndef KILN_SYS_GUARDED_H
#define KILN_SYS_GUARDED_H

#include <stddef.h>

#include "kiln/status.h"

/* What others may do with a file; not counted are this user and the administrators. */
typedef enum kn_exposure {
    KN_EXPOSED_TO_NOBODY,
    KN_EXPOSED_TO_GROUP, /* which may read it, and nobody else */
    KN_EXPOSED_TO_READERS,
    KN_EXPOSED_TO_WRITERS, /* who may read it or not */
} kn_exposure;

/* What takes those rights away. */
#ifdef _WIN32
#define KN_GUARDED_HIDE "let nobody but yourself read it, with icacls"
#define KN_GUARDED_SHARE "let nobody but its users read it, with icacls"
#define KN_GUARDED_LOCK "let nobody but yourself change it, with icacls"
#else
#define KN_GUARDED_HIDE "run chmod 600 on it"
#define KN_GUARDED_SHARE "run chmod g-w,o-rwx on it"
#define KN_GUARDED_LOCK "run chmod go-w on it"
#endif

/* Reads a whole regular file, with a NUL after the last byte; data is malloc'ed. What is judged is
 * the file that was read. KILN_MISS (no diag) if there is none; KILN_E_INVALID if it is larger than
 * `limit` or no regular file; KILN_E_IO, KILN_E_NOMEM. */
kiln_status kn_guarded_read(const char *path, size_t limit, void **out_data, size_t *out_size,
                            kn_exposure *out_exposure, kiln_diag *diag);

/* Makes a file that nobody else may read at any time, with `data` in it, where the caller has seen
 * none. KILN_E_IO, KILN_E_NOMEM. */
kiln_status kn_guarded_make(const char *path, const void *data, size_t size, kiln_diag *diag);

#endif
