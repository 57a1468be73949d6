/* The version of the headers, and of the library that was loaded. */
#ifndef KILN_VERSION_H
#define KILN_VERSION_H

#include "kiln/export.h"

KILN_BEGIN_DECLS

#define KILN_VERSION_MAJOR 0
#define KILN_VERSION_MINOR 1
#define KILN_VERSION_PATCH 0
#define KILN_VERSION "0.1.0"

/* The library's version as text, "0.1.0".
 * Threads: any.   Blocks: never.   Owns: static string.   Fails: never. */
KILN_API const char *kiln_version(void);

KILN_END_DECLS

#endif
