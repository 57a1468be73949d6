/* The VkPipelineCache that kiln keeps for a program on a device: what the program makes without one
 * of its own is made with it, and what the program's own caches hold is joined to it. It is saved
 * as it grows, by a thread, and when the device goes. Nothing of it is done when the process ends
 * without destroying the device: no driver may be called then. */
#ifndef KILN_VULKAN_LAYER_KEPT_H
#define KILN_VULKAN_LAYER_KEPT_H

#include "apis/vulkan/dropin/data.h"
#include "apis/vulkan/layer/api.h"

typedef struct kn_layer_kept kn_layer_kept;

/* `site` is borrowed, and the texts of `info` are copied. NULL when out of memory. */
kn_layer_kept *kn_layer_kept_create(kn_vulkan_site *site, const kn_vk_layer_device_info *info);
/* Saves what has come. The device is still there, and nobody else uses it. */
void kn_layer_kept_destroy(kn_layer_kept *kept);

/* The object to make pipelines with; VK_NULL_HANDLE where nothing is kept. It lives as long as the
 * device. Threads: any. */
VkPipelineCache kn_layer_kept_cache(kn_layer_kept *kept);
/* That many pipelines were asked for with it. */
void kn_layer_kept_used(kn_layer_kept *kept, uint32_t count);

/* --- the program's own, whose data it did not bring ------------------------------------------- */

/* It was made, and no thread but this one has it yet: it gets what is kept, the first one of a
 * device in any case, further ones as long as the program has read none. */
void kn_layer_kept_adopt(kn_layer_kept *kept, VkPipelineCache cache);
/* Pipelines are asked for with it: with what they are to be made. That is VK_NULL_HANDLE in a
 * floating-point state other than the default, in which what is kept was made. */
VkPipelineCache kn_layer_kept_adopted_used(kn_layer_kept *kept, VkPipelineCache cache,
                                           uint32_t count);
/* The program reads or destroys it: what it holds is taken over, if pipelines were made with it
 * since. `goes`: it is forgotten. */
void kn_layer_kept_gather(kn_layer_kept *kept, VkPipelineCache cache, bool goes);

#endif
