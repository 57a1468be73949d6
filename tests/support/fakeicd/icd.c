/* libkiln_fakeicd.so: lavapipe ($FAKE_REAL_LIBRARY) with pipeline caches that hold something.
 * $FAKE_ICD_LOG: a line for each pipeline. $FAKE_ICD_EMPTY: caches hold nothing after all.
 * $FAKE_ICD_FAIL: so many pipelines fail. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include <vulkan/vk_icd.h>

#include "support/fakeicd/pipelines.h"

#define EXPORT __attribute__((visibility("default")))

static PFN_vkGetInstanceProcAddr real_instance_proc;
static PFN_vkGetDeviceProcAddr real_device_proc;
static VkInstance last_instance;
static VkDevice last_device;

static PFN_vkVoidFunction find_real(const char *name)
{
    return real_device_proc(last_device, name);
}

static void open_real(void)
{
    const char *path = getenv("FAKE_REAL_LIBRARY");
    void *library = path != NULL ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    void *symbol = library != NULL ? dlsym(library, "vk_icdGetInstanceProcAddr") : NULL;
    memcpy(&real_instance_proc, &symbol, sizeof(symbol));
}

static VkResult VKAPI_CALL icd_vkCreateInstance(const VkInstanceCreateInfo *info,
                                                const VkAllocationCallbacks *allocator,
                                                VkInstance *out)
{
    PFN_vkCreateInstance create =
        (PFN_vkCreateInstance)real_instance_proc(NULL, "vkCreateInstance");
    const VkResult result = create(info, allocator, out);
    last_instance = *out;
    return result;
}

static VkResult VKAPI_CALL icd_vkCreateDevice(VkPhysicalDevice physical,
                                              const VkDeviceCreateInfo *info,
                                              const VkAllocationCallbacks *allocator, VkDevice *out)
{
    PFN_vkCreateDevice create =
        (PFN_vkCreateDevice)real_instance_proc(last_instance, "vkCreateDevice");
    PFN_vkGetPhysicalDeviceProperties properties =
        (PFN_vkGetPhysicalDeviceProperties)real_instance_proc(last_instance,
                                                              "vkGetPhysicalDeviceProperties");
    VkPhysicalDeviceProperties facts;
    properties(physical, &facts);
    memcpy(fake.uuid, facts.pipelineCacheUUID, VK_UUID_SIZE);
    fake.vendor = facts.vendorID;
    fake.device = facts.deviceID;
    fake.real = find_real;
    fake.log = getenv("FAKE_ICD_LOG");
    fake.makes_none = getenv("FAKE_ICD_EMPTY") != NULL;
    const char *fails = getenv("FAKE_ICD_FAIL");
    fake.fail_next = fails != NULL ? atoi(fails) : 0;
    const VkResult result = create(physical, info, allocator, out);
    last_device = *out;
    return result;
}

static PFN_vkVoidFunction VKAPI_CALL icd_vkGetDeviceProcAddr(VkDevice device, const char *name)
{
    PFN_vkVoidFunction own = fake_find(name);
    return own != NULL ? own : real_device_proc(device, name);
}

EXPORT VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vk_icdGetInstanceProcAddr(VkInstance instance,
                                                                          const char *name)
{
    if (real_instance_proc == NULL) {
        open_real();
    }
    if (real_instance_proc == NULL) {
        return NULL;
    }
    PFN_vkVoidFunction real = real_instance_proc(instance, name);
    if (strcmp(name, "vkCreateInstance") == 0) {
        return (PFN_vkVoidFunction)icd_vkCreateInstance;
    }
    if (strcmp(name, "vkCreateDevice") == 0) {
        return (PFN_vkVoidFunction)icd_vkCreateDevice;
    }
    if (strcmp(name, "vkGetDeviceProcAddr") == 0) {
        real_device_proc = (PFN_vkGetDeviceProcAddr)real;
        return (PFN_vkVoidFunction)icd_vkGetDeviceProcAddr;
    }
    return real;
}

EXPORT VKAPI_ATTR VkResult VKAPI_CALL vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t *version)
{
    *version = *version < 5 ? *version : 5;
    return VK_SUCCESS;
}
