/* What kiln doctor says of variables: those that are set, those that kiln does not know, and those
 * whose values it does not take. The last are taken out of this process, so that the rest can be
 * examined. */
#ifndef KILN_PROGRAM_DOCTOR_SETTINGS_H
#define KILN_PROGRAM_DOCTOR_SETTINGS_H

#include "cmd/doctor_problems.h"

enum { DOCTOR_SETTINGS_MAX = 64 };

/* Those that are set, "NAME=value", without the secrets of URLs. */
typedef struct doctor_settings {
    const char *lines[DOCTOR_SETTINGS_MAX];
    size_t count;
} doctor_settings;

/* Before anything is opened. */
void doctor_settings_examine(doctor_problems *problems, doctor_settings *out_settings);
void doctor_settings_print(const doctor_settings *settings);

/* A copy of a list of URLs without the names and passwords before their '@'. NULL: no memory. */
char *doctor_settings_hide(cli_pool *pool, const char *urls);

#endif
