/* A layer of an image that kiln pushes: a tar of one file and its signature. */
#ifndef KILN_PROGRAM_SHIP_SEAL_H
#define KILN_PROGRAM_SHIP_SEAL_H

#include "cli/pool.h"
#include "ship/tar.h"

/* Makes one of a file of this name, signed where there is a key; *out_layer is malloc'ed.
 * KILN_E_NOMEM, KILN_E_INVALID, and what kiln_pack_sign fails with. */
kiln_status seal_make(cli_pool *pool, const tar_file *file, void **out_layer, size_t *out_size,
                      bool *out_signed, kiln_diag *diag);
/* The file in one, which lies in it. `place` is where it comes from. KILN_E_CORRUPT; and
 * KILN_E_REJECTED where no trusted key signed it, unless `unsigned_too` and no key is set. */
kiln_status seal_open(const char *place, const char *layer, size_t size, bool unsigned_too,
                      tar_file *out_file, bool *out_signed, kiln_diag *diag);

#endif
