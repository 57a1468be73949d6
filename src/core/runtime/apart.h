/* OpenCL's drivers (ICDs) lie behind one loader. A bad one is kept from it by a directory with the
 * registrations of the others, which the loader's variable names, in a child or in this process. */
#ifndef KILN_CORE_APART_H
#define KILN_CORE_APART_H

#include <stdbool.h>
#include <stddef.h>

#include "kiln/sys/backend.h"

#define KN_APART_VARIABLE "OCL_ICD_VENDORS"
#define KN_APART_END ".icd" /* of a registration's name */

/* Names of registrations that are left out: "/bad.icd/worse.icd/", "" for none. */
#define KN_LEFT_OUT_SIZE 512

typedef struct kn_apart {
    char *from; /* where they are registered */
    char *dir;  /* the directory with copies of some, or NULL */
} kn_apart;

/* False for another backend than OpenCL, and where its loader looks elsewhere. */
bool kn_apart_init(kn_apart *apart, const char *backend);
void kn_apart_deinit(kn_apart *apart);

/* Recreates the directory: with `only` (NULL: with all) but what is in `left_out`. */
bool kn_apart_fill(kn_apart *apart, const char *only, const char *left_out);
bool kn_apart_is_left_out(const char *left_out, const char *name);
/* False if there is no room for it. */
bool kn_apart_leave_out(char left_out[KN_LEFT_OUT_SIZE], const char *name);
/* "bad.icd, worse.icd" */
void kn_apart_describe(const char *left_out, char *text, size_t size);

/* Whether the process had the loader before kiln, so that it cannot be kept from any driver: what
 * such a process finds says nothing of others. To be asked before kiln opens it for the first time.
 */
bool kn_apart_is_preloaded(const char *backend);

/* Calls `open` with the loader's variable pointed at a directory without what is in `left_out`.
 * False, without a call, if the loader may have read its list already or cannot be given
 * another. */
typedef void kn_apart_open(void *user);
bool kn_apart_call(const char *backend, const char *left_out, kn_apart_open *open, void *user);

#endif
