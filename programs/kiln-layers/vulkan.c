/* libkiln-vulkan.so: VK_LAYER_KILN_cache, a layer of the Vulkan loader's interface 2. It links libc
 * alone; the core, which answers from the cache, is opened when a device is first asked for what a
 * pipeline is made of: many programs only look at devices. With KILN_DISABLE or KILN_NO_CACHE the
 * functions below are given out as if the layer were not there. */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apis/vulkan/layer/api.h"
#include "kiln-interpose/enter.h"

#include <vulkan/vk_layer.h>

#define EXPORT __attribute__((visibility("default")))
#define NAME_SIZE 128

/* All handles of an instance, and all of a device, begin with one pointer of the loader's. */
typedef struct layer_entry {
    struct layer_entry *next;
    const void *key;
} layer_entry;

typedef struct layer_instance {
    layer_entry entry; /* first */
    VkInstance handle;
    PFN_vkGetInstanceProcAddr below;
    PFN_vkDestroyInstance destroy;
    PFN_vkGetPhysicalDeviceProperties properties;
    PFN_vkGetPhysicalDeviceProperties2 properties2;
    PFN_vkGetPhysicalDeviceQueueFamilyProperties families;
    uint32_t api_version;
    char application[NAME_SIZE], engine[NAME_SIZE];
} layer_instance;

/* A device's functions that the layer stands in for: the core's, or those below. */
typedef struct layer_calls {
#define X(result, name, parameters, arguments) PFN_##name name;
#include "apis/vulkan/layer/calls.def"
#undef X
} layer_calls;

typedef struct layer_device {
    layer_entry entry;            /* first */
    kn_vk_layer_device_info info; /* what the core gets */
    char application[NAME_SIZE], engine[NAME_SIZE];
    PFN_vkDestroyDevice destroy;
    pthread_mutex_t opening; /* guards what follows up to `opened`, which is set once */
    layer_calls calls;
    bool has_core;
    _Atomic bool opened;
} layer_device;

static struct {
    pthread_mutex_t mutex; /* guards the lists; links apart, it does not guard what is in them */
    layer_entry *instances, *devices;
    pthread_once_t opened;
    const kn_vk_layer *core; /* NULL: not available; set once */
} layer = {.mutex = PTHREAD_MUTEX_INITIALIZER, .opened = PTHREAD_ONCE_INIT};

/* --- the core --------------------------------------------------------------------------------- */

/* Any other value of KILN_NO_CACHE is the core's to read. */
static bool is_vulkan_disabled(void)
{
    const char *none = getenv("KILN_NO_CACHE");
    return kn_is_disabled() || (none != NULL && strcmp(none, "1") == 0);
}

/* LIBEXEC/vulkan/1/libkiln-vulkan.so and LIBEXEC/libkiln-interpose.so. */
static void open_vulkan_core(void)
{
    union {
        void *object;
        kn_interpose_vulkan_fn *function;
    } entry = {is_vulkan_disabled() ? NULL : kn_enter_core(KN_INTERPOSE_VULKAN)};
    layer.core = entry.object != NULL ? entry.function() : NULL;
}

static const kn_vk_layer *use_vulkan_core(void)
{
    (void)pthread_once(&layer.opened, open_vulkan_core);
    return layer.core;
}

/* --- what is known of handles ----------------------------------------------------------------- */

static const void *key_of(const void *handle)
{
    const void *key = NULL;
    memcpy(&key, handle, sizeof(key));
    return key;
}

static void add_entry(layer_entry **list, layer_entry *added, const void *handle)
{
    added->key = key_of(handle);
    (void)pthread_mutex_lock(&layer.mutex);
    added->next = *list;
    *list = added;
    (void)pthread_mutex_unlock(&layer.mutex);
}

/* What a handle belongs to, or NULL; `takes`: it is removed. */
static void *find_entry(layer_entry **list, const void *handle, bool takes)
{
    const void *key = key_of(handle);
    (void)pthread_mutex_lock(&layer.mutex);
    layer_entry **at = list;
    while (*at != NULL && (*at)->key != key) {
        at = &(*at)->next;
    }
    layer_entry *found = *at;
    if (takes && found != NULL) {
        *at = found->next;
    }
    (void)pthread_mutex_unlock(&layer.mutex);
    return found;
}

/* --- instances -------------------------------------------------------------------------------- */

/* The loader's link for this layer in a chain of pNext, or NULL: the interface has it moved on. The
 * structs for instances and devices begin alike. */
static void *find_link(const void *chain, VkStructureType type)
{
    for (const VkBaseInStructure *at = chain; at != NULL; at = at->pNext) {
        if (at->sType == type &&
            ((const VkLayerDeviceCreateInfo *)(const void *)at)->function == VK_LAYER_LINK_INFO) {
            return (void *)(uintptr_t)at;
        }
    }
    return NULL;
}

static void copy_name(char to[NAME_SIZE], const char *text)
{
    (void)snprintf(to, NAME_SIZE, "%s", text != NULL ? text : "");
}

/* While the instance is made: later the loader's answers lead to the top of all layers. */
static void bind_instance(layer_instance *made, VkInstance handle)
{
    made->handle = handle;
#define BIND(field, name) made->field = (PFN_##name)made->below(handle, #name)
    BIND(destroy, vkDestroyInstance);
    BIND(properties, vkGetPhysicalDeviceProperties);
    BIND(properties2, vkGetPhysicalDeviceProperties2);
    BIND(families, vkGetPhysicalDeviceQueueFamilyProperties);
#undef BIND
}

static VkResult VKAPI_CALL layer_vkCreateInstance(const VkInstanceCreateInfo *info,
                                                  const VkAllocationCallbacks *allocator,
                                                  VkInstance *out)
{
    VkLayerInstanceCreateInfo *link =
        find_link(info->pNext, VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO);
    layer_instance *made = calloc(1, sizeof(*made));
    if (link == NULL || made == NULL) {
        free(made);
        return link == NULL ? VK_ERROR_INITIALIZATION_FAILED : VK_ERROR_OUT_OF_HOST_MEMORY;
    }
    made->below = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
    link->u.pLayerInfo = link->u.pLayerInfo->pNext;
    PFN_vkCreateInstance create =
        (PFN_vkCreateInstance)made->below(VK_NULL_HANDLE, "vkCreateInstance");
    const VkResult result =
        create != NULL ? create(info, allocator, out) : VK_ERROR_INITIALIZATION_FAILED;
    if (result != VK_SUCCESS) {
        free(made);
        return result;
    }
    bind_instance(made, *out);
    const VkApplicationInfo *program = info->pApplicationInfo;
    made->api_version =
        program != NULL && program->apiVersion != 0 ? program->apiVersion : VK_API_VERSION_1_0;
    copy_name(made->application, program != NULL ? program->pApplicationName : NULL);
    copy_name(made->engine, program != NULL ? program->pEngineName : NULL);
    add_entry(&layer.instances, &made->entry, *out);
    return VK_SUCCESS;
}

static void VKAPI_CALL layer_vkDestroyInstance(VkInstance instance,
                                               const VkAllocationCallbacks *allocator)
{
    layer_instance *known =
        instance != VK_NULL_HANDLE ? find_entry(&layer.instances, instance, true) : NULL;
    if (known != NULL) {
        known->destroy(instance, allocator);
        free(known);
    }
}

/* --- devices ---------------------------------------------------------------------------------- */

/* A program that keeps the binaries of its pipelines itself may give the driver no VkPipelineCache
 * with them. */
static bool keeps_binaries(const VkDeviceCreateInfo *info)
{
    for (uint32_t i = 0; i < info->enabledExtensionCount; i++) {
        if (strcmp(info->ppEnabledExtensionNames[i], "VK_KHR_pipeline_binary") == 0) {
            return true;
        }
    }
    return false;
}

static const char *program_name(char path[PATH_MAX])
{
    const ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    path[length > 0 ? length : 0] = '\0';
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : "";
}

/* With `opening` held. */
static void open_core_device(layer_device *device)
{
    char path[PATH_MAX];
    kn_vk_layer_device_info info = device->info;
    const kn_vk_layer *core = info.passes ? NULL : use_vulkan_core();
    info.program = program_name(path);
    info.application = device->application;
    info.engine = device->engine;
    device->has_core = core != NULL && core->open_device(&info);
#define X(result, name, parameters, arguments)                                                     \
    device->calls.name = (PFN_##name)info.device_proc(info.device, #name);                         \
    if (device->has_core && device->calls.name != NULL) {                                          \
        device->calls.name = (PFN_##name)core->find(#name);                                        \
    }
#include "apis/vulkan/layer/calls.def"
#undef X
}

/* The functions of a device, of a core that is opened for it now at the latest. */
static const layer_calls *use_device(VkDevice handle)
{
    layer_device *device = find_entry(&layer.devices, handle, false);
    if (!atomic_load_explicit(&device->opened, memory_order_acquire)) {
        (void)pthread_mutex_lock(&device->opening);
        if (!atomic_load_explicit(&device->opened, memory_order_relaxed)) {
            open_core_device(device);
            atomic_store_explicit(&device->opened, true, memory_order_release);
        }
        (void)pthread_mutex_unlock(&device->opening);
    }
    return &device->calls;
}

/* What the core will ask for, as long as the loader answers. */
static void describe_device(layer_device *made, const layer_instance *instance,
                            const VkDeviceCreateInfo *info)
{
    made->destroy =
        (PFN_vkDestroyDevice)made->info.device_proc(made->info.device, "vkDestroyDevice");
    made->info.properties = instance->properties;
    made->info.properties2 = instance->properties2;
    made->info.families = instance->families;
    made->info.api_version = instance->api_version;
    made->info.passes = is_vulkan_disabled() || keeps_binaries(info);
    copy_name(made->application, instance->application);
    copy_name(made->engine, instance->engine);
    (void)pthread_mutex_init(&made->opening, NULL);
}

static VkResult VKAPI_CALL layer_vkCreateDevice(VkPhysicalDevice physical,
                                                const VkDeviceCreateInfo *info,
                                                const VkAllocationCallbacks *allocator,
                                                VkDevice *out)
{
    const layer_instance *instance = find_entry(&layer.instances, physical, false);
    VkLayerDeviceCreateInfo *link =
        find_link(info->pNext, VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO);
    layer_device *made = calloc(1, sizeof(*made));
    if (instance == NULL || link == NULL || made == NULL) {
        free(made);
        return VK_ERROR_INITIALIZATION_FAILED;
    }
    PFN_vkGetInstanceProcAddr next = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
    made->info.device_proc = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
    link->u.pLayerInfo = link->u.pLayerInfo->pNext;
    PFN_vkCreateDevice create = (PFN_vkCreateDevice)next(instance->handle, "vkCreateDevice");
    const VkResult result =
        create != NULL ? create(physical, info, allocator, out) : VK_ERROR_INITIALIZATION_FAILED;
    if (result != VK_SUCCESS) {
        free(made);
        return result;
    }
    made->info.physical = physical;
    made->info.device = *out;
    describe_device(made, instance, info);
    add_entry(&layer.devices, &made->entry, *out);
    return VK_SUCCESS;
}

static void VKAPI_CALL layer_vkDestroyDevice(VkDevice device,
                                             const VkAllocationCallbacks *allocator)
{
    layer_device *known =
        device != VK_NULL_HANDLE ? find_entry(&layer.devices, device, true) : NULL;
    if (known != NULL) {
        if (known->has_core) {
            layer.core->close_device(device);
        }
        known->destroy(device, allocator);
        (void)pthread_mutex_destroy(&known->opening);
        free(known);
    }
}

/* Which device is meant is known at the call. */
#define RETURN_void
#define RETURN_VkResult return
#define X(result, name, parameters, arguments)                                                     \
    static result VKAPI_CALL any_##name parameters                                                 \
    {                                                                                              \
        RETURN_##result use_device(device)->name arguments;                                        \
    }
#include "apis/vulkan/layer/calls.def"
#undef X

/* --- what a loader calls ---------------------------------------------------------------------- */

static PFN_vkVoidFunction VKAPI_CALL layer_vkGetDeviceProcAddr(VkDevice device, const char *name);
static PFN_vkVoidFunction VKAPI_CALL layer_vkGetInstanceProcAddr(VkInstance instance,
                                                                 const char *name);

typedef struct own_call {
    const char *name;
    PFN_vkVoidFunction call;
} own_call;

#define OWN(name)                                                                                  \
    {                                                                                              \
#name, (PFN_vkVoidFunction)layer_##name                                                    \
    }
static const own_call device_calls[] = {OWN(vkGetDeviceProcAddr), OWN(vkDestroyDevice)};
static const own_call instance_calls[] = {OWN(vkGetInstanceProcAddr), OWN(vkCreateInstance),
                                          OWN(vkDestroyInstance), OWN(vkCreateDevice)};
#undef OWN

static PFN_vkVoidFunction find_own(const own_call *calls, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(calls[i].name, name) == 0) {
            return calls[i].call;
        }
    }
    return NULL;
}

static PFN_vkVoidFunction find_device_call(const char *name)
{
    return find_own(device_calls, sizeof(device_calls) / sizeof(*device_calls), name);
}

static PFN_vkVoidFunction find_any_device_call(const char *name)
{
    static const own_call calls[] = {
#define X(result, name, parameters, arguments) {#name, (PFN_vkVoidFunction)any_##name},
#include "apis/vulkan/layer/calls.def"
#undef X
    };
    return find_own(calls, sizeof(calls) / sizeof(*calls), name);
}

static PFN_vkVoidFunction VKAPI_CALL layer_vkGetDeviceProcAddr(VkDevice device, const char *name)
{
    const layer_device *known = find_entry(&layer.devices, device, false);
    PFN_vkVoidFunction own = find_device_call(name);
    if (known == NULL || own != NULL) {
        return own;
    }
    /* A function that the driver lacks, or that needs an extension which is off, is not there. */
    PFN_vkVoidFunction below = known->info.device_proc(device, name);
    own = known->info.passes || below == NULL ? NULL : find_any_device_call(name);
    return own != NULL ? own : below;
}

/* Layers above, and programs through them, may ask an instance for a device's functions, before
 * there is a device. */
static PFN_vkVoidFunction VKAPI_CALL layer_vkGetInstanceProcAddr(VkInstance instance,
                                                                 const char *name)
{
    PFN_vkVoidFunction own =
        find_own(instance_calls, sizeof(instance_calls) / sizeof(*instance_calls), name);
    if (own == NULL) {
        own = find_device_call(name);
    }
    const layer_instance *known =
        instance != VK_NULL_HANDLE ? find_entry(&layer.instances, instance, false) : NULL;
    if (own != NULL || known == NULL) {
        return own;
    }
    /* The loader, which is asked last, has no answer for what is in every device; of an extension
     * it knows whether a driver has it. */
    PFN_vkVoidFunction below = known->below(instance, name);
    own = is_vulkan_disabled() ? NULL : find_any_device_call(name);
    return own != NULL && (below != NULL || strstr(name, "RayTracing") == NULL) ? own : below;
}

EXPORT VKAPI_ATTR VkResult VKAPI_CALL
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface *interface)
{
    if (interface == NULL || interface->sType != LAYER_NEGOTIATE_INTERFACE_STRUCT ||
        interface->loaderLayerInterfaceVersion < 2) {
        return VK_ERROR_INITIALIZATION_FAILED;
    }
    interface->loaderLayerInterfaceVersion = 2;
    interface->pfnGetInstanceProcAddr = layer_vkGetInstanceProcAddr;
    interface->pfnGetDeviceProcAddr = layer_vkGetDeviceProcAddr;
    interface->pfnGetPhysicalDeviceProcAddr = NULL;
    return VK_SUCCESS;
}
