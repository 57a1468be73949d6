/* libkiln_fakeicd.so: lavapipe ($FAKE_REAL_LIBRARY) with pipeline caches that hold something.
 * $FAKE_ICD_LOG: a line for each pipeline. $FAKE_ICD_EMPTY: caches hold nothing after all.
 * $FAKE_ICD_FAIL: so many pipelines fail. $FAKE_ICD_SLOW: a merge takes so many milliseconds.
 * $FAKE_ICD_BINARIES: it has VK_KHR_pipeline_binary, as far as its name. */
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

static const char binaries[] = "VK_KHR_pipeline_binary";

static VkResult VKAPI_CALL icd_vkEnumerateDeviceExtensionProperties(VkPhysicalDevice physical,
                                                                    const char *layer,
                                                                    uint32_t *count,
                                                                    VkExtensionProperties *out)
{
    PFN_vkEnumerateDeviceExtensionProperties real =
        (PFN_vkEnumerateDeviceExtensionProperties)real_instance_proc(
            last_instance, "vkEnumerateDeviceExtensionProperties");
    const bool more = getenv("FAKE_ICD_BINARIES") != NULL;
    const uint32_t room = *count;
    if (more && out != NULL && room > 0) {
        *count = room - 1;
    }
    const VkResult result = real(physical, layer, count, out);
    if (result == VK_SUCCESS && more) {
        if (out != NULL && *count < room) {
            out[*count] = (VkExtensionProperties){.specVersion = 1};
            memcpy(out[*count].extensionName, binaries, sizeof(binaries));
        }
        ++*count;
    }
    return result;
}

/* Without the name that the real driver does not know. */
static VkDeviceCreateInfo without_binaries(const VkDeviceCreateInfo *info, const char **names)
{
    VkDeviceCreateInfo plain = *info;
    plain.enabledExtensionCount = 0;
    plain.ppEnabledExtensionNames = names;
    for (uint32_t i = 0; i < info->enabledExtensionCount; i++) {
        if (strcmp(info->ppEnabledExtensionNames[i], binaries) != 0) {
            names[plain.enabledExtensionCount++] = info->ppEnabledExtensionNames[i];
        }
    }
    return plain;
}

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
    const char *slow = getenv("FAKE_ICD_SLOW");
    fake.merge_ms = slow != NULL ? atoi(slow) : 0;
    const char **names = calloc(info->enabledExtensionCount + 1, sizeof(*names));
    const VkDeviceCreateInfo plain = without_binaries(info, names);
    const VkResult result = create(physical, &plain, allocator, out);
    free(names);
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
    if (strcmp(name, "vkEnumerateDeviceExtensionProperties") == 0) {
        return (PFN_vkVoidFunction)icd_vkEnumerateDeviceExtensionProperties;
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
