/* The remotes that KILN_REMOTE names and the keys that entries are signed with, as kiln doctor
 * reports them. */
#ifndef KILN_PROGRAM_DOCTOR_REMOTES_H
#define KILN_PROGRAM_DOCTOR_REMOTES_H

#include <kiln/unstable/remote.h>

#include "cmd/doctor_problems.h"

enum { DOCTOR_REMOTES_MAX = 8 };

typedef struct doctor_remotes {
    kiln_remote_report reports[DOCTOR_REMOTES_MAX];
    size_t count;
    const char *signing, *trusted; /* files; NULL: not set */
    char public_key[KILN_PUBLIC_KEY_TEXT_SIZE];
    size_t trusted_count; /* keys in `trusted` */
} doctor_remotes;

/* Asks each remote. What cannot be used is a problem, and is taken out of the environment of this
 * process, so that the cache can be opened. Blocks: disk, network. */
void doctor_remotes_examine(doctor_problems *problems, doctor_remotes *out_remotes);
/* Nothing without remotes and keys. */
void doctor_remotes_print(const doctor_remotes *remotes);
json_t *doctor_remotes_json(const doctor_remotes *remotes);

#endif
