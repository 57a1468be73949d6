/* Moves diagnostics, and reports that memory ran out. */
#include "cli/diag.h"

void diag_move(kiln_diag *to, kiln_diag *from)
{
    kiln_diag_clear(to);
    if (to == NULL) {
        kiln_diag_clear(from);
        return;
    }
    *to = *from;
    *from = (kiln_diag)KILN_DIAG_INIT;
}

kiln_status diag_no_memory(kiln_diag *diag, const char *what)
{
    return kiln_diag_set(diag, KILN_E_NOMEM, NULL, what, "out of memory");
}
