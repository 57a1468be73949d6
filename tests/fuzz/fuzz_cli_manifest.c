/* Text that claims to be a kernel manifest: refused with a place, or kernels that can be looked at.
 */
#include "fuzz/fuzz.h"
#include "manifest/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cli_pool pool = POOL_INIT;
    cli_manifest manifest;
    kiln_diag diag = KILN_DIAG_INIT;
    char *text = pool_text(&pool, (const char *)data, size);
    if (text == NULL) {
        return 0;
    }
    if (manifest_parse(text, size, "m.json", &pool, &manifest, &diag) != KILN_OK) {
        if (diag.what[0] == '\0' || diag.why[0] == '\0') {
            abort();
        }
    } else {
        for (size_t i = 0; i < manifest.count; i++) {
            if (manifest.kernels[i].name == NULL || manifest.kernels[i].form_count == 0) {
                abort();
            }
        }
    }
    kiln_diag_clear(&diag);
    pool_deinit(&pool);
    return 0;
}
