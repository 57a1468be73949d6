/* A VkPipelineCache from its data, and back. */
#include <stdlib.h>
#include <string.h>

#include "apis/vulkan/backend/instance.h"
#include "base/diag.h"

#define CACHE_LIMIT ((size_t)1 << 30) /* larger ones are not believed */
enum { READ_TRIES = 8 };

static const char what[] = "pipeline cache";

/* Vulkan 1.1, "Pipeline Cache Header": drivers need not check it, so nothing foreign reaches them.
 */
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
    return why == NULL ? KILN_OK : kiln_diag_set(diag, KILN_E_REJECTED, NULL, what, "%s", why);
}

kiln_status kn_vk_cache_create(PFN_vkCreatePipelineCache create, VkDevice device,
                               const VkPhysicalDeviceProperties *properties, const void *data,
                               size_t size, VkPipelineCache *out_cache, kiln_diag *diag)
{
    const VkPipelineCacheCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
        .initialDataSize = data != NULL ? size : 0,
        .pInitialData = data,
    };
    kiln_status status = data != NULL ? kn_vk_cache_check(properties, data, size, diag) : KILN_OK;
    if (status != KILN_OK) {
        return status;
    }
    VkResult result = create(device, &info, NULL, out_cache);
    if (result == VK_SUCCESS) {
        return KILN_OK;
    }
    *out_cache = VK_NULL_HANDLE;
    status = kn_vk_fail(result, "vkCreatePipelineCache", diag);
    return data != NULL && status != KILN_E_NOMEM ? KILN_E_REJECTED : status;
}

kiln_status kn_vk_cache_read(PFN_vkGetPipelineCacheData get, VkDevice device,
                             const VkPhysicalDeviceProperties *properties, VkPipelineCache cache,
                             void **out_data, size_t *out_size, kiln_diag *diag)
{
    size_t size = 0, room = 0;
    VkResult result = VK_INCOMPLETE;
    void *data = NULL;
    /* It may grow between the two calls where another thread makes pipelines with it. */
    for (int i = 0; i < READ_TRIES && result == VK_INCOMPLETE; i++) {
        free(data);
        data = NULL;
        result = get(device, cache, &room, NULL);
        size = room;
        if (result != VK_SUCCESS || size == 0 || size > CACHE_LIMIT) {
            break;
        }
        data = malloc(size);
        if (data == NULL) {
            return kn_no_memory(diag, what);
        }
        result = get(device, cache, &size, data);
    }
    kiln_status status = KILN_OK;
    if (result != VK_SUCCESS) {
        status = kn_vk_fail(result, "vkGetPipelineCacheData", diag);
    } else if (size > room || size > CACHE_LIMIT) {
        status = kiln_diag_set(diag, KILN_E_INTERNAL, "update the Vulkan driver", what,
                               "the driver reports %zu bytes, after %zu before", size, room);
    } else {
        status = kn_vk_cache_check(properties, data, data != NULL ? size : 0, diag);
    }
    if (status != KILN_OK) {
        free(data);
        return status;
    }
    *out_data = data;
    *out_size = size;
    return KILN_OK;
}
