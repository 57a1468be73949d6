/* See rtc_library.h. */
#include "interpose/rtc_library.h"

kiln_status kn_rtc_library_identify(kn_rtc_library *library, kn_rtc_identity *out, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    kn_mutex_lock(&library->lock);
    if (!library->known) {
        status = library->kind->find_identity(library, &library->identity, diag);
        library->known = status == KILN_OK;
    }
    *out = library->identity;
    kn_mutex_unlock(&library->lock);
    return status;
}
