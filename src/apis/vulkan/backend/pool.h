/* A sub-allocating memory pool: Vulkan allows few allocations (maxMemoryAllocationCount may be
 * 4,096) and each is slow, so buffers share blocks of up to 64 MiB; a large one gets a block of its
 * own. Thread-safe. */
#ifndef KILN_VULKAN_BACKEND_POOL_H
#define KILN_VULKAN_BACKEND_POOL_H

#include <stdbool.h>
#include <stdint.h>

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include "kiln/status.h"

typedef struct kn_vk_pool kn_vk_pool;
struct kn_vk_device_fn;

typedef struct kn_vk_memory {
    struct kn_vk_block *block;
    VkDeviceMemory handle;
    VkDeviceSize offset, size;
    void *mapped; /* host address of `offset`, or NULL */
    bool coherent;
} kn_vk_memory;

/* `fn` and `properties` are borrowed and must outlive the pool. */
kiln_status kn_vk_pool_create(VkDevice device, const struct kn_vk_device_fn *fn,
                              const VkPhysicalDeviceMemoryProperties *properties, VkDeviceSize atom,
                              kn_vk_pool **out_pool, kiln_diag *diag);
void kn_vk_pool_destroy(kn_vk_pool *pool);

/* Memory that meets `requirements` and has all of `needed`, best also `preferred`, properties. */
kiln_status kn_vk_pool_get(kn_vk_pool *pool, const VkMemoryRequirements *requirements,
                           VkMemoryPropertyFlags needed, VkMemoryPropertyFlags preferred,
                           kn_vk_memory *out_memory, kiln_diag *diag);
void kn_vk_pool_put(kn_vk_pool *pool, kn_vk_memory *memory);

#endif
