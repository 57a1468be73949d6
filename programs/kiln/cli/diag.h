/* Diagnostics on their way through the command: moved whole. */
#ifndef KILN_PROGRAM_DIAG_H
#define KILN_PROGRAM_DIAG_H

#include <kiln/status.h>

/* Hands what `from` holds, log and vendor code included, to `to` (NULL drops it) in place of what
 * was there, and leaves `from` empty. */
void diag_move(kiln_diag *to, kiln_diag *from);

/* Fills the diag with "WHAT: out of memory" and returns KILN_E_NOMEM. */
kiln_status diag_no_memory(kiln_diag *diag, const char *what);

#endif
