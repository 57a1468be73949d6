/* Links: Windows lets only some users make them, so kiln makes none. */
#include "sys/link.h"

kiln_status kn_link_create(const char *target, const char *path, kiln_diag *diag)
{
    (void)target;
    return kiln_diag_set(diag, KILN_E_UNSUPPORTED, NULL, "linking to a directory",
                         "%s: not on Windows", path);
}
