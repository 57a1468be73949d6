/* Tar archives of a few files, as an image's layers are: POSIX ustar, the same bytes for the same
 * files. */
#ifndef KILN_PROGRAM_SHIP_TAR_H
#define KILN_PROGRAM_SHIP_TAR_H

#include <stdbool.h>
#include <stddef.h>

#include <kiln/status.h>

typedef struct tar_file {
    const char *name; /* at most 99 bytes */
    const void *data;
    size_t size;
} tar_file;

/* Makes an archive; *out_data is malloc'ed. KILN_E_NOMEM, KILN_E_INVALID (a name, a size). */
kiln_status tar_make(const tar_file *files, size_t count, void **out_data, size_t *out_size,
                     kiln_diag *diag);
/* Reads the next file from *at on and moves it; names and data lie in the archive. KILN_MISS: there
 * is none more. KILN_E_CORRUPT. */
kiln_status tar_next(const void *data, size_t size, size_t *at, tar_file *out_file);

#endif
