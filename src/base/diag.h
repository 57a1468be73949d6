/* What the library does with a diagnostic besides filling it: hand it on whole, and say that memory
 * ran out. */
#ifndef KILN_BASE_DIAG_H
#define KILN_BASE_DIAG_H

#include "kiln/status.h"

/* Hands what `from` holds, log and vendor code included, to the caller's `to` in place of what was
 * there, and leaves `from` empty. A NULL `to` drops it. */
void kn_diag_move(kiln_diag *to, kiln_diag *from);

/* The same, but `from` keeps what it holds. Without memory for the log the copy has none. */
void kn_diag_copy(kiln_diag *to, const kiln_diag *from);

/* Fills the diag with "WHAT: out of memory" and returns KILN_E_NOMEM. Here, so that every caller's
 * compiler and checker sees that it is a failure. */
static inline kiln_status kn_no_memory(kiln_diag *diag, const char *what)
{
    (void)kiln_diag_set(diag, KILN_E_NOMEM, NULL, what, "out of memory");
    return KILN_E_NOMEM;
}

#endif
