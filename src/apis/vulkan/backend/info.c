/* What a physical device says of itself, as plain fields. */
#include <string.h>

#include "apis/vulkan/backend/instance.h"
#include "base/text.h"

#define MAX_FAMILIES 32u

static void find_family(const kn_vk *vk, kn_vk_physical *physical)
{
    VkQueueFamilyProperties families[MAX_FAMILIES] = {{0}};
    uint32_t count = MAX_FAMILIES;
    physical->family = UINT32_MAX;
    vk->fn.vkGetPhysicalDeviceQueueFamilyProperties(physical->handle, &count, families);
    for (uint32_t i = 0; i < count && i < MAX_FAMILIES; i++) {
        const bool compute = (families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) != 0;
        const bool graphics = (families[i].queueFlags & VK_QUEUE_GRAPHICS_BIT) != 0;
        /* A family for compute alone is a hardware queue of its own where there is one. */
        if (compute && (physical->family == UINT32_MAX || !graphics)) {
            physical->family = i;
            physical->timestamp_bits = families[i].timestampValidBits;
            if (!graphics) {
                return;
            }
        }
    }
}

void kn_vk_physical_query(const kn_vk *vk, VkPhysicalDevice handle, kn_vk_physical *out_physical)
{
    memset(out_physical, 0, sizeof(*out_physical));
    out_physical->handle = handle;
    VkPhysicalDeviceProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
    };
    vk->fn.vkGetPhysicalDeviceProperties2(handle, &properties);
    out_physical->properties = properties.properties;
    if (properties.properties.apiVersion >= VK_API_VERSION_1_1) {
        out_physical->id.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES;
        out_physical->subgroup.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES;
        out_physical->driver.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES;
        out_physical->id.pNext = &out_physical->subgroup;
        if (properties.properties.apiVersion >= VK_API_VERSION_1_2 &&
            vk->api_version >= VK_API_VERSION_1_2) {
            out_physical->subgroup.pNext = &out_physical->driver;
        }
        properties.pNext = &out_physical->id;
        vk->fn.vkGetPhysicalDeviceProperties2(handle, &properties);
        /* The struct is copied about from here on: no pointers into the old place. */
        out_physical->id.pNext = NULL;
        out_physical->subgroup.pNext = NULL;
        out_physical->driver.pNext = NULL;
    }
    /* Texts end where their arrays do, whatever the driver has put there. */
    out_physical->properties.deviceName[VK_MAX_PHYSICAL_DEVICE_NAME_SIZE - 1] = '\0';
    out_physical->driver.driverName[VK_MAX_DRIVER_NAME_SIZE - 1] = '\0';
    out_physical->driver.driverInfo[VK_MAX_DRIVER_INFO_SIZE - 1] = '\0';
    find_family(vk, out_physical);
    const VkPhysicalDeviceLimits *limits = &out_physical->properties.limits;
    out_physical->groups.size = limits->maxComputeWorkGroupInvocations;
    for (int i = 0; i < 3; i++) {
        out_physical->groups.dim[i] = limits->maxComputeWorkGroupSize[i];
        out_physical->groups.count[i] = limits->maxComputeWorkGroupCount[i];
    }
}

kiln_device_class kn_vk_class_of(VkPhysicalDeviceType type)
{
    switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
        return KILN_DEVICE_DISCRETE;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
        return KILN_DEVICE_INTEGRATED;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
        return KILN_DEVICE_VIRTUAL;
    default:
        return KILN_DEVICE_SOFTWARE; /* CPU, and what will not say */
    }
}

static const char *vendor_name(uint32_t id)
{
    static const struct {
        uint32_t id;
        const char *name;
    } rows[] = {
        {0x10de, "NVIDIA"}, {0x1002, "AMD"},      {0x8086, "Intel"},
        {0x13b5, "Arm"},    {0x5143, "Qualcomm"}, {0x1010, "Imagination"},
        {0x106b, "Apple"},  {0x10005, "Mesa"},    {0x14e4, "Broadcom"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].id == id) {
            return rows[i].name;
        }
    }
    return "";
}

static void fill_limits(const kn_vk *vk, const kn_vk_physical *physical, kiln_device_info *info)
{
    const VkPhysicalDeviceLimits *limits = &physical->properties.limits;
    info->max_group_size = physical->groups.size;
    memcpy(info->max_group_dim, physical->groups.dim, sizeof(info->max_group_dim));
    info->subgroup_size = physical->subgroup.subgroupSize;
    info->local_bytes = limits->maxComputeSharedMemorySize;
    info->max_buffer_bytes = limits->maxStorageBufferRange;
    info->address_bits = 64;
    info->timestamps = physical->timestamp_bits > 0 && limits->timestampPeriod > 0;
    VkPhysicalDeviceMemoryProperties memory = {.memoryHeapCount = 0};
    vk->fn.vkGetPhysicalDeviceMemoryProperties(physical->handle, &memory);
    for (uint32_t i = 0; i < memory.memoryHeapCount && i < VK_MAX_MEMORY_HEAPS; i++) {
        if ((memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0) {
            info->memory_bytes += memory.memoryHeaps[i].size;
        }
    }
}

static void fill_features(const kn_vk *vk, const kn_vk_physical *physical, kiln_device_info *info)
{
    VkPhysicalDeviceVulkan12Features features12 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
    };
    VkPhysicalDeviceFeatures2 features = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
        .pNext = physical->properties.apiVersion >= VK_API_VERSION_1_2 ? &features12 : NULL,
    };
    vk->fn.vkGetPhysicalDeviceFeatures2(physical->handle, &features);
    info->fp64 = features.features.shaderFloat64 != 0;
    info->fp16 = features12.shaderFloat16 != 0;
}

kiln_status kn_vk_device_info(void *instance, uint32_t index, kiln_device_info *out_info,
                              kiln_diag *diag)
{
    const kn_vk *vk = (const kn_vk *)instance;
    if (index >= vk->device_count) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, "vulkan", "there is no device %u", index);
    }
    const kn_vk_physical *physical = &vk->physical[index];
    const VkPhysicalDeviceProperties *properties = &physical->properties;
    kiln_device_info info = {.struct_size = sizeof(info), .index = index};
    kn_text_put(info.backend, sizeof(info.backend), "vulkan");
    kn_text_put(info.name, sizeof(info.name), properties->deviceName);
    kn_text_put(info.vendor, sizeof(info.vendor), vendor_name(properties->vendorID));
    kn_text_putf(info.version, sizeof(info.version), "Vulkan %u.%u.%u",
                 VK_API_VERSION_MAJOR(properties->apiVersion),
                 VK_API_VERSION_MINOR(properties->apiVersion),
                 VK_API_VERSION_PATCH(properties->apiVersion));
    if (physical->driver.driverInfo[0] != '\0') {
        kn_text_put(info.driver, sizeof(info.driver), physical->driver.driverInfo);
        kn_text_put(info.platform, sizeof(info.platform), physical->driver.driverName);
    } else {
        kn_text_putf(info.driver, sizeof(info.driver), "%u", properties->driverVersion);
    }
    kn_text_putf(info.target, sizeof(info.target), "%04x-%04x", properties->vendorID,
                 properties->deviceID);
    kn_hex_encode(physical->id.deviceUUID, VK_UUID_SIZE, info.uuid);
    info.device_class = kn_vk_class_of(properties->deviceType);
    fill_limits(vk, physical, &info);
    fill_features(vk, physical, &info);
    *out_info = info;
    return KILN_OK;
}
