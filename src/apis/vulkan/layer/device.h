/* A device under the layer: the functions below it, what is known of the program's objects, and the
 * VkPipelineCache that kiln keeps for the program. */
#ifndef KILN_VULKAN_LAYER_DEVICE_H
#define KILN_VULKAN_LAYER_DEVICE_H

#include "apis/vulkan/dropin/data.h"
#include "apis/vulkan/layer/api.h"
#include "apis/vulkan/layer/contents.h"
#include "apis/vulkan/layer/kept.h"

typedef struct kn_layer_calls {
#define X(result, name, parameters, arguments) PFN_##name name;
#include "apis/vulkan/layer/calls.def"
#undef X
} kn_layer_calls;

typedef struct kn_layer_device {
    struct kn_layer_device *next;
    const void *key; /* the loader's table, which all handles of the device begin with */
    kn_layer_calls driver;
    kn_vulkan_site site;
    bool passes; /* everything is the driver's */
    kn_layer_contents contents;
    kn_layer_kept *kept; /* NULL where it passes */
    PFN_vkDestroyPipeline destroy_pipeline;
    _Atomic uint32_t barren; /* pipelines in a row of which the driver gave no data */
} kn_layer_device;

/* layer.c: the device of a handle; it lives until the program destroys it. Threads: any. */
kn_layer_device *kn_layer_device_of(VkDevice handle);

/* compute.c: vkCreateComputePipelines without a VkPipelineCache of the program's, through the
 * cache. What it returns and leaves in `out` is what one call of the driver's did. */
VkResult kn_layer_create_compute(kn_layer_device *device, uint32_t count,
                                 const VkComputePipelineCreateInfo *infos,
                                 const VkAllocationCallbacks *allocator, VkPipeline *out);

#endif
