/* Bytes that claim to be SPIR-V: refused, or described within the limits of the description. */
#include "apis/vulkan/backend/spirv.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kn_spirv module;
    if (kn_spirv_reflect(data, size, "fuzz", &module, NULL) == KILN_OK &&
        (module.entry_count == 0 || module.entry_count > KN_SPIRV_MAX_ENTRIES ||
         module.binding_count > KN_SPIRV_MAX_BINDINGS ||
         module.member_count > KN_SPIRV_MAX_MEMBERS)) {
        abort();
    }
    return 0;
}
