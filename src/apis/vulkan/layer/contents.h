/* What the program's objects are made of: a digest for each shader module with a compute entry,
 * each sampler, set layout and pipeline layout, by its handle. Handles do not reveal it. */
#ifndef KILN_VULKAN_LAYER_CONTENTS_H
#define KILN_VULKAN_LAYER_CONTENTS_H

#include "apis/vulkan/backend/instance.h"
#include "base/map.h"
#include "kiln/cache.h"

typedef enum kn_content_kind {
    KN_CONTENT_MODULE = 1,
    KN_CONTENT_SAMPLER = 2,
    KN_CONTENT_SET_LAYOUT = 3,
    KN_CONTENT_LAYOUT = 4
} kn_content_kind;

typedef struct kn_layer_contents {
    kn_mutex mutex;
    kn_map digests; /* kind and handle: KN_DIGEST_SIZE bytes */
} kn_layer_contents;

void kn_contents_init(kn_layer_contents *contents);
void kn_contents_deinit(kn_layer_contents *contents);

/* An object was made, or is destroyed. One whose memory ran out is unknown. Threads: any. */
void kn_contents_add_module(kn_layer_contents *contents, VkShaderModule handle,
                            const VkShaderModuleCreateInfo *info);
void kn_contents_add_sampler(kn_layer_contents *contents, VkSampler handle,
                             const VkSamplerCreateInfo *info);
void kn_contents_add_set_layout(kn_layer_contents *contents, VkDescriptorSetLayout handle,
                                const VkDescriptorSetLayoutCreateInfo *info);
void kn_contents_add_layout(kn_layer_contents *contents, VkPipelineLayout handle,
                            const VkPipelineLayoutCreateInfo *info);
void kn_contents_remove(kn_layer_contents *contents, kn_content_kind kind, uint64_t handle);

/* Adds all that a compute pipeline is made of. KILN_E_UNSUPPORTED without a diag where that is
 * unknown; KILN_E_NOMEM. */
kiln_status kn_contents_add_pipeline(kn_layer_contents *contents,
                                     const VkComputePipelineCreateInfo *info, kiln_recipe *recipe,
                                     kiln_diag *diag);
/* The flags of a VkPipelineCreateFlags2CreateInfo in its chain, or 0. */
uint64_t kn_contents_flags2(const VkComputePipelineCreateInfo *info);

#endif
