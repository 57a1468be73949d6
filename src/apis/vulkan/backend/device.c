/* An opened device: VkDevice, its compute queue, its entry points and memory pool. All features
 * that the device has and kernels may use are switched on; robust buffer access stays off. */
#include <stdlib.h>
#include <string.h>

#include "apis/vulkan/backend/instance.h"
#include "base/diag.h"
#include "base/text.h"

/* The feature structs of the device's own version, chained; filled by the query and passed on. */
typedef struct feature_chain {
    VkPhysicalDeviceFeatures2 base;
    VkPhysicalDeviceVulkan11Features v11;
    VkPhysicalDeviceVulkan12Features v12;
    VkPhysicalDeviceVulkan13Features v13;
    VkPhysicalDevice16BitStorageFeatures storage16; /* 1.1 alone */
} feature_chain;

static void query_features(const kn_vk *vk, const kn_vk_physical *physical, feature_chain *chain)
{
    const uint32_t version = physical->properties.apiVersion;
    memset(chain, 0, sizeof(*chain));
    chain->base.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    chain->v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
    chain->v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    chain->v13.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES;
    chain->storage16.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES;
    if (version >= VK_API_VERSION_1_2 && vk->api_version >= VK_API_VERSION_1_2) {
        chain->base.pNext = &chain->v11;
        chain->v11.pNext = &chain->v12;
        chain->v12.pNext = version >= VK_API_VERSION_1_3 && vk->api_version >= VK_API_VERSION_1_3
                               ? &chain->v13
                               : NULL;
    } else {
        chain->base.pNext = &chain->storage16;
    }
    vk->fn.vkGetPhysicalDeviceFeatures2(physical->handle, &chain->base);
    chain->base.features.robustBufferAccess = VK_FALSE;
    chain->v13.robustImageAccess = VK_FALSE;
    /* Costs address space and gives a compute kernel nothing. */
    chain->v12.bufferDeviceAddressCaptureReplay = VK_FALSE;
    chain->v11.protectedMemory = VK_FALSE;
}

static const char *bind_device(kn_vk_device *device)
{
    PFN_vkGetDeviceProcAddr get = device->vk->fn.vkGetDeviceProcAddr;
    const char *missing = NULL;
#define DEVICE(name)                                                                               \
    device->fn.name = (PFN_##name)get(device->handle, #name);                                      \
    missing = missing == NULL && device->fn.name == NULL ? #name : missing;
#include "apis/vulkan/backend/loader.def"
    return missing;
}

static kiln_status create_device(kn_vk_device *device, kiln_diag *diag)
{
    const kn_vk *vk = device->vk;
    const float priority = 1.0F;
    const VkDeviceQueueCreateInfo queue = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
        .queueFamilyIndex = device->physical->family,
        .queueCount = 1,
        .pQueuePriorities = &priority,
    };
    feature_chain features;
    query_features(vk, device->physical, &features);
    const VkDeviceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .pNext = &features.base,
        .queueCreateInfoCount = 1,
        .pQueueCreateInfos = &queue,
    };
    VkResult result = vk->fn.vkCreateDevice(device->physical->handle, &info, NULL, &device->handle);
    if (result != VK_SUCCESS) {
        device->handle = VK_NULL_HANDLE;
        return kn_vk_fail(result, "vkCreateDevice", diag);
    }
    const char *missing = bind_device(device);
    if (missing != NULL) {
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE, "install a Vulkan 1.1 driver", "vulkan",
                             "the driver lacks %s", missing);
    }
    device->fn.vkGetDeviceQueue(device->handle, device->physical->family, 0, &device->queue);
    return KILN_OK;
}

kiln_status kn_vk_device_open(void *instance, uint32_t index, void **out_device, kiln_diag *diag)
{
    kn_vk *vk = (kn_vk *)instance;
    *out_device = NULL;
    if (index >= vk->device_count) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, "vulkan", "there is no device %u", index);
    }
    kn_vk_device *device = (kn_vk_device *)calloc(1, sizeof(*device));
    if (device == NULL) {
        return kn_no_memory(diag, "vulkan");
    }
    device->vk = vk;
    device->physical = &vk->physical[index];
    kn_mutex_init(&device->queue_lock);
    kiln_status status = create_device(device, diag);
    if (status == KILN_OK) {
        VkPhysicalDeviceMemoryProperties memory;
        vk->fn.vkGetPhysicalDeviceMemoryProperties(device->physical->handle, &memory);
        status = kn_vk_pool_create(device->handle, &device->fn, &memory,
                                   device->physical->properties.limits.nonCoherentAtomSize,
                                   &device->memory, diag);
    }
    if (status != KILN_OK) {
        kn_vk_device_close(device);
        return status;
    }
    *out_device = device;
    return KILN_OK;
}

void kn_vk_device_close(void *opaque)
{
    kn_vk_device *device = (kn_vk_device *)opaque;
    if (device == NULL) {
        return;
    }
    if (device->handle != VK_NULL_HANDLE && device->fn.vkDestroyDevice != NULL) {
        (void)device->fn.vkDeviceWaitIdle(device->handle);
        kn_vk_pool_destroy(device->memory);
        device->fn.vkDestroyDevice(device->handle, NULL);
    }
    kn_mutex_deinit(&device->queue_lock);
    free(device);
}
