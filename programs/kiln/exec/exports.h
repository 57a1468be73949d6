/* What a library exports, and whether kiln's in its place has all of it. */
#ifndef KILN_PROGRAM_EXEC_EXPORTS_H
#define KILN_PROGRAM_EXEC_EXPORTS_H

#include <stdbool.h>

/* True if every function of `real` whose name begins with `prefix`, underscores before it left out,
 * is one of `front`'s. False where either cannot be read, too: a program that asks for a function
 * which kiln's library lacks does not start. Blocks: disk. */
bool exec_exports_cover(const char *front, const char *real, const char *prefix);
/* Whether it has this function. False where it cannot be read, too. Blocks: disk. */
bool exec_exports_have(const char *real, const char *name);

#endif
