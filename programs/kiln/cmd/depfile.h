/* A list of what an output depends on, in the syntax that make and ninja read. */
#ifndef KILN_PROGRAM_DEPFILE_H
#define KILN_PROGRAM_DEPFILE_H

#include <kiln/kiln.h>

/* Writes "TARGET: SOURCE HEADER..." to `path`: the source's own file and every header that its
 * compile for `target` reaches. KILN_E_UNSUPPORTED if the headers cannot be known. */
kiln_status depfile_write(const char *path, const char *output, const char *file,
                          kiln_runtime *runtime, const char *target, const kiln_source *source,
                          kiln_diag *diag);

#endif
