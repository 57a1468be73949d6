/* What the Vulkan layer that a loader opens (programs/kiln-layers/vulkan.c) and its core agree on;
 * they are built and installed together. This file must not include anything of kiln's library: the
 * layer links libc alone. */
#ifndef KILN_VULKAN_LAYER_API_H
#define KILN_VULKAN_LAYER_API_H

#include <stdbool.h>

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

/* A device that was just made, and the functions below this layer. A loader gives out those of an
 * instance while that is made: later the same question leads to the top of all layers. Texts are
 * copied. */
typedef struct kn_vk_layer_device_info {
    VkPhysicalDevice physical;
    VkDevice device;
    PFN_vkGetPhysicalDeviceProperties properties;
    PFN_vkGetPhysicalDeviceProperties2 properties2; /* NULL before Vulkan 1.1 */
    PFN_vkGetPhysicalDeviceQueueFamilyProperties families;
    PFN_vkGetDeviceProcAddr device_proc;
    uint32_t api_version;    /* that the instance was made for */
    const char *program;     /* the name of its file, or "" */
    const char *application; /* as the program names itself and its engine, or "" */
    const char *engine;
    bool passes; /* kiln stays out of it */
} kn_vk_layer_device_info;

typedef struct kn_vk_layer {
    /* Threads: any. False: the device is unknown to the core, and the driver's own functions are to
     * be given out for it. */
    bool (*open_device)(const kn_vk_layer_device_info *info);
    /* Before the driver's vkDestroyDevice; of an unknown one it does nothing. */
    void (*close_device)(VkDevice device);
    /* The function that stands in for a device's of this name, or NULL. */
    PFN_vkVoidFunction (*find)(const char *name);
} kn_vk_layer;

/* The one function that the core exports. Threads: any. */
#define KN_INTERPOSE_VULKAN "kn_interpose_vulkan"
typedef const kn_vk_layer *kn_interpose_vulkan_fn(void);

#endif
