/* Fills a table of functions from a library. Knows a library only by kn_dylib_symbol: the same on
 * every system. */
#include <string.h>

#include "sys/dylib.h"

kiln_status kn_dylib_bind(kn_dylib *lib, const kn_symbol *symbols, size_t count, uint32_t version,
                          void *table, kiln_diag *diag)
{
    const kn_symbol *absent = NULL;

    for (size_t i = 0; i < count; i++) {
        void *address = kn_dylib_symbol(lib, symbols[i].name);
        /* All pointers have one representation on the systems that load libraries. */
        memcpy((char *)table + symbols[i].offset, &address, sizeof address);
        bool newer = version != 0 && symbols[i].since > version;
        if (address == NULL && symbols[i].need == KN_REQUIRED && !newer && absent == NULL) {
            absent = &symbols[i];
        }
    }
    if (absent == NULL) {
        return KILN_OK;
    }
    for (size_t i = 0; i < count; i++) {
        memset((char *)table + symbols[i].offset, 0, sizeof(void *));
    }
    return kiln_diag_set(diag, KILN_E_UNAVAILABLE, "install a newer or complete version of it",
                         kn_dylib_path(lib), "it has no function %s", absent->name);
}
