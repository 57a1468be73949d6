/* The backends that come with kiln. Of the two lists one may be empty: in a build with backends as
 * modules the shared library links none in, and loads each from a file of its own; the archive
 * always has them all. Made by CMakeLists.txt here from KILN_BACKENDS, in order of preference. */
#ifndef KILN_LIST_H
#define KILN_LIST_H

#include "kiln/sys/backend.h"

/* Linked in; ends with NULL. */
extern const kiln_backend *const kn_builtin_backends[];
/* Names of those that are in a libkiln-NAME.so each, among kiln's own modules; ends with NULL. */
extern const char *const kn_module_backends[];

#endif
