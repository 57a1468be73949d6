/* VK_LAYER_TEST_asking: a layer that has a device's function of the layer below from
 * vkGetInstanceProcAddr, before there is a device. Where that has none, pipelines fail. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <vulkan/vk_layer.h>

#define EXPORT __attribute__((visibility("default")))

static PFN_vkGetInstanceProcAddr next_instance_proc;
static PFN_vkGetDeviceProcAddr next_device_proc;
static PFN_vkCreateComputePipelines next_create;
static VkInstance last_instance;

static VkResult VKAPI_CALL asking_vkCreateInstance(const VkInstanceCreateInfo *info,
                                                   const VkAllocationCallbacks *allocator,
                                                   VkInstance *out)
{
    VkLayerInstanceCreateInfo *link = (VkLayerInstanceCreateInfo *)(uintptr_t)info->pNext;
    while (link->sType != VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO ||
           link->function != VK_LAYER_LINK_INFO) {
        link = (VkLayerInstanceCreateInfo *)(uintptr_t)link->pNext;
    }
    next_instance_proc = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
    link->u.pLayerInfo = link->u.pLayerInfo->pNext;
    PFN_vkCreateInstance create =
        (PFN_vkCreateInstance)next_instance_proc(VK_NULL_HANDLE, "vkCreateInstance");
    const VkResult result = create(info, allocator, out);
    if (result == VK_SUCCESS) {
        last_instance = *out;
        next_create =
            (PFN_vkCreateComputePipelines)next_instance_proc(*out, "vkCreateComputePipelines");
    }
    return result;
}

static VkResult VKAPI_CALL asking_vkCreateDevice(VkPhysicalDevice physical,
                                                 const VkDeviceCreateInfo *info,
                                                 const VkAllocationCallbacks *allocator,
                                                 VkDevice *out)
{
    VkLayerDeviceCreateInfo *link = (VkLayerDeviceCreateInfo *)(uintptr_t)info->pNext;
    while (link->sType != VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO ||
           link->function != VK_LAYER_LINK_INFO) {
        link = (VkLayerDeviceCreateInfo *)(uintptr_t)link->pNext;
    }
    next_device_proc = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
    link->u.pLayerInfo = link->u.pLayerInfo->pNext;
    PFN_vkCreateDevice create =
        (PFN_vkCreateDevice)next_instance_proc(last_instance, "vkCreateDevice");
    return create(physical, info, allocator, out);
}

static VkResult VKAPI_CALL asking_vkCreateComputePipelines(VkDevice device, VkPipelineCache cache,
                                                           uint32_t count,
                                                           const VkComputePipelineCreateInfo *infos,
                                                           const VkAllocationCallbacks *allocator,
                                                           VkPipeline *out)
{
    return next_create == NULL ? VK_ERROR_INITIALIZATION_FAILED
                               : next_create(device, cache, count, infos, allocator, out);
}

static PFN_vkVoidFunction VKAPI_CALL asking_vkGetDeviceProcAddr(VkDevice device, const char *name)
{
    if (strcmp(name, "vkGetDeviceProcAddr") == 0) {
        return (PFN_vkVoidFunction)asking_vkGetDeviceProcAddr;
    }
    return strcmp(name, "vkCreateComputePipelines") == 0
               ? (PFN_vkVoidFunction)asking_vkCreateComputePipelines
               : next_device_proc(device, name);
}

static PFN_vkVoidFunction VKAPI_CALL asking_vkGetInstanceProcAddr(VkInstance instance,
                                                                  const char *name)
{
    if (strcmp(name, "vkCreateInstance") == 0) {
        return (PFN_vkVoidFunction)asking_vkCreateInstance;
    }
    if (strcmp(name, "vkCreateDevice") == 0) {
        return (PFN_vkVoidFunction)asking_vkCreateDevice;
    }
    if (strcmp(name, "vkGetDeviceProcAddr") == 0) {
        return (PFN_vkVoidFunction)asking_vkGetDeviceProcAddr;
    }
    return instance != VK_NULL_HANDLE ? next_instance_proc(instance, name) : NULL;
}

EXPORT VKAPI_ATTR VkResult VKAPI_CALL
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface *interface)
{
    interface->loaderLayerInterfaceVersion = 2;
    interface->pfnGetInstanceProcAddr = asking_vkGetInstanceProcAddr;
    interface->pfnGetDeviceProcAddr = asking_vkGetDeviceProcAddr;
    interface->pfnGetPhysicalDeviceProcAddr = NULL;
    return VK_SUCCESS;
}
