/* VkResult -> kiln_status. */
#include "apis/vulkan/backend/instance.h"

static const struct {
    VkResult result;
    const char *name;
    kiln_status status;
} rows[] = {
    {VK_NOT_READY, "VK_NOT_READY", KILN_E_BUSY},
    {VK_TIMEOUT, "VK_TIMEOUT", KILN_E_TIMEOUT},
    {VK_INCOMPLETE, "VK_INCOMPLETE", KILN_E_INTERNAL},
    {VK_ERROR_OUT_OF_HOST_MEMORY, "VK_ERROR_OUT_OF_HOST_MEMORY", KILN_E_NOMEM},
    {VK_ERROR_OUT_OF_DEVICE_MEMORY, "VK_ERROR_OUT_OF_DEVICE_MEMORY", KILN_E_NOMEM},
    {VK_ERROR_INITIALIZATION_FAILED, "VK_ERROR_INITIALIZATION_FAILED", KILN_E_UNAVAILABLE},
    {VK_ERROR_DEVICE_LOST, "VK_ERROR_DEVICE_LOST", KILN_E_DEVICE_LOST},
    {VK_ERROR_MEMORY_MAP_FAILED, "VK_ERROR_MEMORY_MAP_FAILED", KILN_E_NOMEM},
    {VK_ERROR_LAYER_NOT_PRESENT, "VK_ERROR_LAYER_NOT_PRESENT", KILN_E_UNAVAILABLE},
    {VK_ERROR_EXTENSION_NOT_PRESENT, "VK_ERROR_EXTENSION_NOT_PRESENT", KILN_E_UNSUPPORTED},
    {VK_ERROR_FEATURE_NOT_PRESENT, "VK_ERROR_FEATURE_NOT_PRESENT", KILN_E_UNSUPPORTED},
    {VK_ERROR_INCOMPATIBLE_DRIVER, "VK_ERROR_INCOMPATIBLE_DRIVER", KILN_E_UNAVAILABLE},
    {VK_ERROR_TOO_MANY_OBJECTS, "VK_ERROR_TOO_MANY_OBJECTS", KILN_E_NOMEM},
    {VK_ERROR_FRAGMENTED_POOL, "VK_ERROR_FRAGMENTED_POOL", KILN_E_NOMEM},
    {VK_ERROR_OUT_OF_POOL_MEMORY, "VK_ERROR_OUT_OF_POOL_MEMORY", KILN_E_NOMEM},
    {VK_ERROR_INVALID_SHADER_NV, "VK_ERROR_INVALID_SHADER_NV", KILN_E_COMPILE},
    {VK_ERROR_UNKNOWN, "VK_ERROR_UNKNOWN", KILN_E_INTERNAL},
};

kiln_status kn_vk_fail(VkResult result, const char *what, kiln_diag *diag)
{
    const char *name = "an unknown VkResult";
    kiln_status code = KILN_E_INTERNAL;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].result == result) {
            name = rows[i].name;
            code = rows[i].status;
        }
    }
    kiln_status status = kiln_diag_set(
        diag, code, code == KILN_E_NOMEM ? "free device memory, or use smaller buffers" : NULL,
        what, "the driver reports %s (%d)", name, (int)result);
    kiln_diag_set_vendor_code(diag, result);
    return status;
}
