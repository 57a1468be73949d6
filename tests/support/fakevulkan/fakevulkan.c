/* A Vulkan loader that lies: it hands all calls to the real one ($FAKE_REAL_LIBRARY), and replaces
 * one number of its answers by what lies.h says. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vulkan/vulkan.h>

#include "support/lies.h"

static PFN_vkGetInstanceProcAddr real_instance;
static PFN_vkGetDeviceProcAddr real_device;
static VkInstance last_instance;

/* The real function of an instance or of a device. */
#define INSTANCE_FN(name) ((PFN_##name)real_instance(last_instance, #name))
#define DEVICE_FN(device, name) ((PFN_##name)real_device(device, #name))

static void lie_u32(const char *query, uint32_t *field)
{
    uint64_t number = 0;
    if (lie_is_told(query, "value", &number)) {
        *field = (uint32_t)number;
    }
}

static void lie_u64(const char *query, uint64_t *field)
{
    uint64_t number = 0;
    if (lie_is_told(query, "value", &number)) {
        *field = number;
    }
}

static VKAPI_ATTR VkResult VKAPI_CALL fake_vkEnumerateInstanceVersion(uint32_t *version)
{
    const PFN_vkEnumerateInstanceVersion real =
        (PFN_vkEnumerateInstanceVersion)real_instance(NULL, "vkEnumerateInstanceVersion");
    const VkResult result = real(version);
    lie_u32("vkEnumerateInstanceVersion", version);
    return result;
}

static VKAPI_ATTR VkResult VKAPI_CALL fake_vkCreateInstance(const VkInstanceCreateInfo *info,
                                                            const VkAllocationCallbacks *allocator,
                                                            VkInstance *instance)
{
    const PFN_vkCreateInstance real = (PFN_vkCreateInstance)real_instance(NULL, "vkCreateInstance");
    /* One more keeps the drivers in memory, so that a leak of theirs can be known by its library.
     */
    static VkInstance kept;
    if (kept == VK_NULL_HANDLE) {
        (void)real(info, allocator, &kept);
    }
    const VkResult result = real(info, allocator, instance);
    last_instance = *instance;
    real_device = result == VK_SUCCESS ? INSTANCE_FN(vkGetDeviceProcAddr) : NULL;
    return result;
}

static VKAPI_ATTR VkResult VKAPI_CALL fake_vkEnumeratePhysicalDevices(VkInstance instance,
                                                                      uint32_t *count,
                                                                      VkPhysicalDevice *devices)
{
    const VkResult result = INSTANCE_FN(vkEnumeratePhysicalDevices)(instance, count, devices);
    lie_u32("vkEnumeratePhysicalDevices", count);
    return result;
}

static VKAPI_ATTR void VKAPI_CALL
fake_vkGetPhysicalDeviceProperties2(VkPhysicalDevice device, VkPhysicalDeviceProperties2 *out)
{
    VkPhysicalDeviceLimits *limits = &out->properties.limits;
    uint64_t number = 0;
    INSTANCE_FN(vkGetPhysicalDeviceProperties2)(device, out);
    lie_u32("apiVersion", &out->properties.apiVersion);
    lie_u32("maxStorageBufferRange", &limits->maxStorageBufferRange);
    lie_u32("maxPushConstantsSize", &limits->maxPushConstantsSize);
    lie_u32("maxComputeSharedMemorySize", &limits->maxComputeSharedMemorySize);
    lie_u32("maxComputeWorkGroupInvocations", &limits->maxComputeWorkGroupInvocations);
    for (int i = 0; i < 3; i++) {
        lie_u32("maxComputeWorkGroupSize", &limits->maxComputeWorkGroupSize[i]);
        lie_u32("maxComputeWorkGroupCount", &limits->maxComputeWorkGroupCount[i]);
    }
    lie_u64("nonCoherentAtomSize", &limits->nonCoherentAtomSize);
    if (lie_is_told("timestampPeriod", "value", &number)) {
        const uint32_t bits = (uint32_t)number; /* any pattern: infinity and NaN, too */
        memcpy(&limits->timestampPeriod, &bits, sizeof(bits));
    }
    if (lie_is_told("deviceName", "value", &number)) {
        lie_fill(out->properties.deviceName, sizeof(out->properties.deviceName), number);
    }
}

static VKAPI_ATTR void VKAPI_CALL fake_vkGetPhysicalDeviceQueueFamilyProperties(
    VkPhysicalDevice device, uint32_t *count, VkQueueFamilyProperties *families)
{
    INSTANCE_FN(vkGetPhysicalDeviceQueueFamilyProperties)(device, count, families);
    for (uint32_t i = 0; families != NULL && i < *count; i++) {
        lie_u32("timestampValidBits", &families[i].timestampValidBits);
    }
    lie_u32("vkGetPhysicalDeviceQueueFamilyProperties", count);
}

static VKAPI_ATTR void VKAPI_CALL fake_vkGetPhysicalDeviceMemoryProperties(
    VkPhysicalDevice device, VkPhysicalDeviceMemoryProperties *out)
{
    INSTANCE_FN(vkGetPhysicalDeviceMemoryProperties)(device, out);
    lie_u32("memoryTypeCount", &out->memoryTypeCount);
    lie_u32("memoryHeapCount", &out->memoryHeapCount);
    lie_u64("memoryHeapSize", &out->memoryHeaps[0].size);
}

static VKAPI_ATTR void VKAPI_CALL fake_vkGetBufferMemoryRequirements(VkDevice device,
                                                                     VkBuffer buffer,
                                                                     VkMemoryRequirements *out)
{
    DEVICE_FN(device, vkGetBufferMemoryRequirements)(device, buffer, out);
    lie_u64("requirements.size", &out->size);
    lie_u64("requirements.alignment", &out->alignment);
    lie_u32("requirements.memoryTypeBits", &out->memoryTypeBits);
}

static VKAPI_ATTR VkResult VKAPI_CALL fake_vkGetPipelineCacheData(VkDevice device,
                                                                  VkPipelineCache cache,
                                                                  size_t *size, void *data)
{
    uint64_t number = 0;
    const VkResult result = DEVICE_FN(device, vkGetPipelineCacheData)(device, cache, size, data);
    if (lie_is_told("vkGetPipelineCacheData", "length", &number) ||
        (data != NULL && lie_is_told("vkGetPipelineCacheData:data", "length", &number))) {
        *size = (size_t)number;
    }
    return lie_is_told("vkGetPipelineCacheData", "error", &number) ? (VkResult)(int32_t)number
                                                                   : result;
}

static VKAPI_ATTR VkResult VKAPI_CALL fake_vkGetQueryPoolResults(VkDevice device, VkQueryPool pool,
                                                                 uint32_t first, uint32_t count,
                                                                 size_t size, void *data,
                                                                 VkDeviceSize stride,
                                                                 VkQueryResultFlags flags)
{
    uint64_t number = 0;
    const VkResult result = DEVICE_FN(device, vkGetQueryPoolResults)(device, pool, first, count,
                                                                     size, data, stride, flags);
    if (lie_is_told("vkGetQueryPoolResults", "value", &number)) {
        lie_fill((char *)data + size / 2, size / 2, number);
    }
    return result;
}

static PFN_vkVoidFunction find_fake(const char *name)
{
    static const struct {
        const char *name;
        PFN_vkVoidFunction function;
    } fakes[] = {
#define FAKE(name) {#name, (PFN_vkVoidFunction)fake_##name},
        FAKE(vkEnumerateInstanceVersion) FAKE(vkCreateInstance) FAKE(vkEnumeratePhysicalDevices)
            FAKE(vkGetPhysicalDeviceProperties2) FAKE(vkGetPhysicalDeviceQueueFamilyProperties)
                FAKE(vkGetPhysicalDeviceMemoryProperties) FAKE(vkGetBufferMemoryRequirements)
                    FAKE(vkGetPipelineCacheData) FAKE(vkGetQueryPoolResults)};
#undef FAKE
    for (size_t i = 0; i < sizeof(fakes) / sizeof(fakes[0]); i++) {
        if (strcmp(fakes[i].name, name) == 0) {
            return fakes[i].function;
        }
    }
    return NULL;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL fake_vkGetDeviceProcAddr(VkDevice device,
                                                                         const char *name)
{
    const PFN_vkVoidFunction fake = find_fake(name);
    return fake != NULL ? fake : real_device(device, name);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetInstanceProcAddr(VkInstance instance,
                                                               const char *name)
{
    if (real_instance == NULL) {
        const char *path = getenv("FAKE_REAL_LIBRARY");
        void *library = path != NULL ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
        void *symbol = library != NULL ? dlsym(library, "vkGetInstanceProcAddr") : NULL;
        if (symbol == NULL) {
            return NULL;
        }
        memcpy(&real_instance, &symbol, sizeof(symbol));
    }
    if (strcmp(name, "vkGetDeviceProcAddr") == 0) {
        return (PFN_vkVoidFunction)fake_vkGetDeviceProcAddr;
    }
    const PFN_vkVoidFunction fake = find_fake(name);
    return fake != NULL ? fake : real_instance(instance, name);
}
