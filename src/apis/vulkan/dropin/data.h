/* The data of a VkPipelineCache, to and from the store. Whatever goes into vkCreatePipelineCache
 * here was verified by the store and has the header of this device and driver. */
#ifndef KILN_VULKAN_DROPIN_DATA_H
#define KILN_VULKAN_DROPIN_DATA_H

#include "apis/vulkan/backend/instance.h"
#include "store/cache/cache.h"

/* A VkPipelineCache is never stored larger, unless its user says so. */
#define KN_VULKAN_SAVE_LIMIT ((size_t)64 << 20)

/* Where pipelines are made, and the functions of it that take a VkPipelineCache. */
typedef struct kn_vulkan_site {
    kiln_cache *cache;
    VkDevice device;
    kn_vk_physical physical;
    PFN_vkCreatePipelineCache create_cache;
    PFN_vkDestroyPipelineCache destroy_cache;
    PFN_vkGetPipelineCacheData get_data;
    PFN_vkMergePipelineCaches merge;
} kn_vulkan_site;

/* Fills these functions; the name of the first that is missing, or NULL. */
const char *kn_vulkan_bind(kn_vulkan_site *site, PFN_vkGetDeviceProcAddr find);

/* A recipe with device and driver in it. KILN_E_NOMEM. */
kiln_status kn_vulkan_recipe(const kn_vulkan_site *site, const char *stage, uint32_t revision,
                             kiln_recipe **out_recipe, kiln_diag *diag);

/* An object of the driver's with this data, or an empty one. KILN_E_REJECTED where the data is not
 * this driver's, or the driver will not have it. */
kiln_status kn_vulkan_make_cache(const kn_vulkan_site *site, const void *data, size_t size,
                                 VkPipelineCache *out_cache, kiln_diag *diag);
/* Its data, malloc'ed; sound, or an error. */
kiln_status kn_vulkan_read_cache(const kn_vulkan_site *site, VkPipelineCache cache, void **out_data,
                                 size_t *out_size, kiln_diag *diag);
/* The same as a blob, or NULL. */
kiln_blob *kn_vulkan_read_blob(const kn_vulkan_site *site, VkPipelineCache cache);
/* What the driver had to add to `blob` takes its place. */
void kn_vulkan_store_growth(const kn_vulkan_site *site, const kiln_recipe *recipe,
                            const kiln_blob *blob, VkPipelineCache cache);
/* Whether data holds anything but its header. */
bool kn_vulkan_is_filled(size_t size);

/* An object with what is stored under the recipe, also since this process last looked, or an empty
 * one: *out_stored says which. Data that the driver refuses is counted and dropped. */
kiln_status kn_vulkan_open_stored(const kn_vulkan_site *site, const kiln_recipe *recipe,
                                  VkPipelineCache *out_cache, bool *out_stored, kiln_diag *diag);

/* Saves what `count` objects hold, at most 4, joined with what is stored under the recipe and with
 * what others save meanwhile; nothing where nothing was added. Over `limit` only the first one's is
 * saved, and nothing where that alone is larger. `name` is for the log. */
kiln_status kn_vulkan_save(const kn_vulkan_site *site, const kiln_recipe *recipe, const char *name,
                           const VkPipelineCache *caches, uint32_t count, size_t limit,
                           kiln_diag *diag);

#endif
