/* Environment variables: raw, and parsed with one clear error that names the variable.
 *
 * Raw variables are in variable.c, parsed ones in env.c. */
#ifndef KILN_SYS_ENV_H
#define KILN_SYS_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kiln/status.h"

/* The value, or NULL if unset. Of a variable of kiln's own, what a configuration file says where it
 * is unset, or what the system's file locks (sys/config.h). Borrowed from the environment or the
 * file. An empty value counts as unset for the parsed forms below. */
const char *kn_env_get(const char *name);
/* Of the environment alone: NULL for any variable in a program that has the rights of another user
 * than its caller (setuid). */
const char *kn_env_shell(const char *name);
/* Where the value of kn_env_get is from, for messages: "environment variable KILN_TRUST", or
 * "/etc/kiln.conf:3 (KILN_TRUST)". */
void kn_env_describe(const char *name, char *out, size_t size);

/* Whether any variable's name may begin with these two characters and one of `third`. False spares
 * asking for each of those that do, every one of which would look through them all; true says
 * nothing. */
bool kn_env_may_have(const char prefix[2], const char *third);

/* Each leaves *out alone when the variable is unset. KILN_E_INVALID on a malformed value.
 * bool: 1/0, true/false, yes/no, on/off. size: a number with K, M, G or T. */
kiln_status kn_env_bool(const char *name, bool *out, kiln_diag *diag);
kiln_status kn_env_size(const char *name, uint64_t *out, kiln_diag *diag);
/* Seconds: a number with s, m, h, d or w ("30d"). */
kiln_status kn_env_duration(const char *name, uint64_t *out_seconds, kiln_diag *diag);
kiln_status kn_env_u64(const char *name, uint64_t min, uint64_t max, uint64_t *out,
                       kiln_diag *diag);

/* A variable over a call of a library that may cut its value to pieces where it lies, for this
 * process and all its children (the OpenCL loader of 2023 does that to OCL_ICD_FILENAMES): kept
 * before, mended after. A value that was set meanwhile stays. */
typedef struct kn_env_kept {
    const char *name;
    const char *at; /* the value's place, or NULL */
    char *copy;
} kn_env_kept;
kn_env_kept kn_env_keep(const char *name);
void kn_env_mend(kn_env_kept *kept);

/* Sets a variable of this process, or removes it (`value` NULL); false where that fails. A thread
 * of the program that reads the environment meanwhile may see either, so this is for what cannot be
 * handed over in any other way, and for as short a time as possible. */
bool kn_env_set(const char *name, const char *value);

/* Calls `visit` with every "NAME=value" of the environment, in no order; both end with the call. */
typedef void kn_env_visit(void *user, const char *variable);
void kn_env_each(kn_env_visit *visit, void *user);

#endif
