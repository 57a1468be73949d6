/* The backends of this process: a list that only grows, one of the library's two globals.
 *
 * The check is in check.c. */
#ifndef KILN_HAL_REGISTRY_H
#define KILN_HAL_REGISTRY_H

#include "kiln/sys/backend.h"

/* KILN_E_INVALID names the operation that is missing, or the ABI that does not fit. */
kiln_status kn_backend_check(const kiln_backend *backend, kiln_diag *diag);

/* Adds a checked backend. `keep` is whatever keeps its code mapped (a library never closed), or
 * NULL. Adding the same table again is fine; another one under a taken name is KILN_E_BUSY. */
kiln_status kn_registry_add(const kiln_backend *backend, void *keep, kiln_diag *diag);

/* Adds the built-in ones (a list that ends with NULL); one that is refused is logged. */
void kn_registry_add_builtin(const kiln_backend *const *list);

/* In the order in which they were added; NULL past the end. */
const kiln_backend *kn_registry_at(size_t index);
const kiln_backend *kn_registry_find(const char *name);

/* Says that no backend has the name `name`, which one is like it, and which names there are; those
 * that work only on request are left out of these. KILN_E_INVALID. */
kiln_status kn_registry_refuse(const char *what, const char *name, kiln_diag *diag);

#endif
