/* Vulkan 1.1, "Pipeline Cache Header": drivers need not check it, so nothing foreign reaches them.
 */
#include <string.h>

#include "apis/vulkan/backend/instance.h"

kiln_status kn_vk_cache_check(const VkPhysicalDeviceProperties *properties, const void *data,
                              size_t size, kiln_diag *diag)
{
    VkPipelineCacheHeaderVersionOne header;
    const char *why = NULL;
    if (size < sizeof(header)) {
        why = "it is shorter than its header";
    } else {
        memcpy(&header, data, sizeof(header));
        if (header.headerSize != sizeof(header) ||
            header.headerVersion != VK_PIPELINE_CACHE_HEADER_VERSION_ONE) {
            why = "its header is of another version";
        } else if (header.vendorID != properties->vendorID ||
                   header.deviceID != properties->deviceID) {
            why = "it was made for another device";
        } else if (memcmp(header.pipelineCacheUUID, properties->pipelineCacheUUID, VK_UUID_SIZE) !=
                   0) {
            why = "it was made by another driver";
        }
    }
    return why == NULL ? KILN_OK
                       : kiln_diag_set(diag, KILN_E_REJECTED, NULL, "pipeline cache", "%s", why);
}
