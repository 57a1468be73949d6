/* The layer's core: the functions that stand in for a device's. Each begins with a look for the
 * device, by what the loader has put in front of all handles of it. */
#include "apis/vulkan/layer/device.h"
#include "kiln/export.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "interpose/session.h"
#include "interpose/uncancelled.h"

static struct {
    kn_mutex mutex;
    kn_layer_device *first;
} devices = {.mutex = KN_MUTEX_INIT};

/* --- devices ---------------------------------------------------------------------------------- */

static const void *key_of(VkDevice handle)
{
    const void *key = NULL;
    memcpy(&key, (const void *)handle, sizeof(key));
    return key;
}

static kn_layer_device *find_device(VkDevice handle, bool takes)
{
    const void *key = key_of(handle);
    kn_mutex_lock(&devices.mutex);
    kn_layer_device **at = &devices.first;
    while (*at != NULL && (*at)->key != key) {
        at = &(*at)->next;
    }
    kn_layer_device *found = *at;
    if (takes && found != NULL) {
        *at = found->next;
    }
    kn_mutex_unlock(&devices.mutex);
    return found;
}

kn_layer_device *kn_layer_device_of(VkDevice handle)
{
    return find_device(handle, false);
}

/* What a driver is, as far as the instance can ask it. */
static bool query_physical(const kn_vk_layer_device_info *info, kn_vk_physical *out_physical)
{
    if (info->properties2 == NULL || info->api_version < VK_API_VERSION_1_1) {
        memset(out_physical, 0, sizeof(*out_physical));
        out_physical->handle = info->physical;
        info->properties(info->physical, &out_physical->properties);
        out_physical->properties.deviceName[VK_MAX_PHYSICAL_DEVICE_NAME_SIZE - 1] = '\0';
        return true;
    }
    kn_vk *vk = calloc(1, sizeof(*vk));
    if (vk != NULL) {
        vk->api_version = info->api_version;
        vk->fn.vkGetPhysicalDeviceProperties2 = info->properties2;
        vk->fn.vkGetPhysicalDeviceQueueFamilyProperties = info->families;
        kn_vk_physical_query(vk, info->physical, out_physical);
    }
    free(vk);
    return vk != NULL;
}

/* False where the cache is unusable: everything then is the driver's. */
static bool open_site(kn_layer_device *device, const kn_vk_layer_device_info *info)
{
    kn_vulkan_site *site = &device->site;
    site->device = info->device;
    site->cache = kn_session_cache();
    device->destroy_pipeline =
        (PFN_vkDestroyPipeline)info->device_proc(info->device, "vkDestroyPipeline");
    if (site->cache == NULL || (site->cache->options.flags & KILN_CACHE_DISABLED) ||
        device->destroy_pipeline == NULL || kn_vulkan_bind(site, info->device_proc) != NULL ||
        !query_physical(info, &site->physical)) {
        return false;
    }
    device->kept = kn_layer_kept_create(site, info);
    return device->kept != NULL;
}

static bool open_device(const kn_vk_layer_device_info *info)
{
    KN_UNCANCELLED;
    kn_layer_device *device = calloc(1, sizeof(*device));
    if (device == NULL) {
        return false;
    }
#define X(result, name, parameters, arguments)                                                     \
    device->driver.name = (PFN_##name)info->device_proc(info->device, #name);
#include "apis/vulkan/layer/calls.def"
#undef X
    device->key = key_of(info->device);
    kn_contents_init(&device->contents);
    device->passes = info->passes || !open_site(device, info);
    kn_mutex_lock(&devices.mutex);
    device->next = devices.first;
    devices.first = device;
    kn_mutex_unlock(&devices.mutex);
    return true;
}

static void close_device(VkDevice handle)
{
    KN_UNCANCELLED;
    kn_layer_device *device = find_device(handle, true);
    if (device != NULL) {
        kn_layer_kept_destroy(device->kept);
        kn_contents_deinit(&device->contents);
        free(device);
    }
}

/* --- objects ---------------------------------------------------------------------------------- */

/* Name and type of a kind of object, and what becomes of it. */
#define OBJECT(Type, kind, add)                                                                    \
    static VkResult VKAPI_CALL call_vkCreate##Type(                                                \
        VkDevice handle, const Vk##Type##CreateInfo *info, const VkAllocationCallbacks *allocator, \
        Vk##Type *out)                                                                             \
    {                                                                                              \
        KN_UNCANCELLED;                                                                            \
        kn_layer_device *device = kn_layer_device_of(handle);                                      \
        const VkResult result = device->driver.vkCreate##Type(handle, info, allocator, out);       \
        if (result == VK_SUCCESS && !device->passes) {                                             \
            add(&device->contents, *out, info);                                                    \
        }                                                                                          \
        return result;                                                                             \
    }                                                                                              \
    static void VKAPI_CALL call_vkDestroy##Type(VkDevice handle, Vk##Type object,                  \
                                                const VkAllocationCallbacks *allocator)            \
    {                                                                                              \
        KN_UNCANCELLED;                                                                            \
        kn_layer_device *device = kn_layer_device_of(handle);                                      \
        if (!device->passes && object != VK_NULL_HANDLE) {                                         \
            kn_contents_remove(&device->contents, kind, (uint64_t)object);                         \
        }                                                                                          \
        device->driver.vkDestroy##Type(handle, object, allocator);                                 \
    }

OBJECT(ShaderModule, KN_CONTENT_MODULE, kn_contents_add_module)
OBJECT(Sampler, KN_CONTENT_SAMPLER, kn_contents_add_sampler)
OBJECT(DescriptorSetLayout, KN_CONTENT_SET_LAYOUT, kn_contents_add_set_layout)
OBJECT(PipelineLayout, KN_CONTENT_LAYOUT, kn_contents_add_layout)
#undef OBJECT

/* --- the program's own VkPipelineCache -------------------------------------------------------- */

/* A program that brings data of this driver keeps it by itself, and is left alone. */
static bool brings_data(const kn_layer_device *device, const VkPipelineCacheCreateInfo *info)
{
    return info->initialDataSize > 0 && info->pInitialData != NULL &&
           kn_vk_cache_check(&device->site.physical.properties, info->pInitialData,
                             info->initialDataSize, NULL) == KILN_OK;
}

static VkResult VKAPI_CALL call_vkCreatePipelineCache(VkDevice handle,
                                                      const VkPipelineCacheCreateInfo *info,
                                                      const VkAllocationCallbacks *allocator,
                                                      VkPipelineCache *out)
{
    KN_UNCANCELLED;
    kn_layer_device *device = kn_layer_device_of(handle);
    const VkResult result = device->driver.vkCreatePipelineCache(handle, info, allocator, out);
    if (result == VK_SUCCESS && !device->passes && !brings_data(device, info)) {
        kn_layer_kept_adopt(device->kept, *out);
    }
    return result;
}

static void VKAPI_CALL call_vkDestroyPipelineCache(VkDevice handle, VkPipelineCache cache,
                                                   const VkAllocationCallbacks *allocator)
{
    KN_UNCANCELLED;
    kn_layer_device *device = kn_layer_device_of(handle);
    if (!device->passes && cache != VK_NULL_HANDLE) {
        kn_layer_kept_gather(device->kept, cache, true);
    }
    device->driver.vkDestroyPipelineCache(handle, cache, allocator);
}

static VkResult VKAPI_CALL call_vkGetPipelineCacheData(VkDevice handle, VkPipelineCache cache,
                                                       size_t *size, void *data)
{
    KN_UNCANCELLED;
    kn_layer_device *device = kn_layer_device_of(handle);
    const VkResult result = device->driver.vkGetPipelineCacheData(handle, cache, size, data);
    if (result == VK_SUCCESS && data != NULL && !device->passes) {
        kn_layer_kept_gather(device->kept, cache, false);
    }
    return result;
}

/* --- pipelines -------------------------------------------------------------------------------- */

/* The cache for a call: the program's, or the one that kiln keeps. */
static VkPipelineCache choose_cache(kn_layer_device *device, VkPipelineCache given, uint32_t count)
{
    if (device->passes) {
        return given;
    }
    if (given != VK_NULL_HANDLE) {
        return kn_layer_kept_adopted_used(device->kept, given, count);
    }
    const VkPipelineCache kept = kn_layer_kept_cache(device->kept);
    if (kept != VK_NULL_HANDLE) {
        kn_layer_kept_used(device->kept, count);
    }
    return kept;
}

static VkResult VKAPI_CALL call_vkCreateComputePipelines(VkDevice handle, VkPipelineCache cache,
                                                         uint32_t count,
                                                         const VkComputePipelineCreateInfo *infos,
                                                         const VkAllocationCallbacks *allocator,
                                                         VkPipeline *out)
{
    KN_UNCANCELLED;
    kn_layer_device *device = kn_layer_device_of(handle);
    if (!device->passes && cache == VK_NULL_HANDLE && count > 0) {
        return kn_layer_create_compute(device, count, infos, allocator, out);
    }
    return device->driver.vkCreateComputePipelines(handle, choose_cache(device, cache, count),
                                                   count, infos, allocator, out);
}

/* With a deferred operation the cache is in use after this call, but not after the device. */
#define PIPELINES(name, parameters, arguments)                                                     \
    static VkResult VKAPI_CALL call_##name parameters                                              \
    {                                                                                              \
        KN_UNCANCELLED;                                                                            \
        kn_layer_device *device = kn_layer_device_of(handle);                                      \
        return device->driver.name arguments;                                                      \
    }
PIPELINES(vkCreateGraphicsPipelines,
          (VkDevice handle, VkPipelineCache cache, uint32_t count,
           const VkGraphicsPipelineCreateInfo *infos, const VkAllocationCallbacks *allocator,
           VkPipeline *out),
          (handle, choose_cache(device, cache, count), count, infos, allocator, out))
PIPELINES(vkCreateRayTracingPipelinesKHR,
          (VkDevice handle, VkDeferredOperationKHR operation, VkPipelineCache cache, uint32_t count,
           const VkRayTracingPipelineCreateInfoKHR *infos, const VkAllocationCallbacks *allocator,
           VkPipeline *out),
          (handle, operation, choose_cache(device, cache, count), count, infos, allocator, out))
PIPELINES(vkCreateRayTracingPipelinesNV,
          (VkDevice handle, VkPipelineCache cache, uint32_t count,
           const VkRayTracingPipelineCreateInfoNV *infos, const VkAllocationCallbacks *allocator,
           VkPipeline *out),
          (handle, choose_cache(device, cache, count), count, infos, allocator, out))
#undef PIPELINES

/* --- the table -------------------------------------------------------------------------------- */

static PFN_vkVoidFunction find_call(const char *name)
{
    static const struct {
        const char *name;
        PFN_vkVoidFunction call;
    } calls[] = {
#define X(result, name, parameters, arguments) {#name, (PFN_vkVoidFunction)call_##name},
#include "apis/vulkan/layer/calls.def"
#undef X
    };
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
        if (strcmp(name, calls[i].name) == 0) {
            return calls[i].call;
        }
    }
    return NULL;
}

KILN_API const kn_vk_layer *kn_interpose_vulkan(void);
const kn_vk_layer *kn_interpose_vulkan(void)
{
    static const kn_vk_layer layer = {open_device, close_device, find_call};
    return &layer;
}
