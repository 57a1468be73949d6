/* Loading a library that exists only as bytes: nothing on Windows needs it yet. The cpu backend's
 * objects are ELF. */
#include "sys/dylib.h"

kiln_status kn_dylib_open_memory(const void *data, size_t size, const char *const *folders,
                                 kn_dylib **out_lib, kiln_diag *diag)
{
    (void)data;
    (void)size;
    (void)folders;
    *out_lib = NULL;
    return kiln_diag_set(diag, KILN_E_UNSUPPORTED, NULL, "loading an object", "not on Windows");
}
