/* Level 2: Vulkan pipelines through the cache, for a program that owns its instance and device.
 *
 * Replace
 *
 *     vkCreateComputePipelines(device, VK_NULL_HANDLE, count, infos, NULL, pipelines);
 *
 * with
 *
 *     kiln_vulkan_create_compute_pipelines(NULL, &where, count, infos, codes, pipelines, &diag);
 *
 * or, in a program that makes its pipelines itself, graphics included, keep one VkPipelineCache:
 *     kiln_vulkan_pipeline_cache_load(NULL, &where, "my-engine", &pipeline_cache, &diag);
 *     ... vkCreate*Pipelines(device, pipeline_cache, ...) ...
 *     kiln_vulkan_pipeline_cache_save(NULL, &where, "my-engine", pipeline_cache, 0, &diag);
 *
 * No Vulkan header is needed: the handles and structs are Vulkan's own. Data that was cut short,
 * damaged, or made by another device or driver never reaches vkCreatePipelineCache. */
#ifndef KILN_VULKAN_H
#define KILN_VULKAN_H

#include "kiln/cache.h"

KILN_BEGIN_DECLS

struct VkInstance_T;
struct VkPhysicalDevice_T;
struct VkDevice_T;
struct VkComputePipelineCreateInfo;

/* VkPipeline and VkPipelineCache, as Vulkan's header defines them: 64 bits on every machine. */
#if UINTPTR_MAX > UINT32_MAX
typedef struct VkPipeline_T *kiln_vk_pipeline;
typedef struct VkPipelineCache_T *kiln_vk_pipeline_cache;
#else
typedef uint64_t kiln_vk_pipeline;
typedef uint64_t kiln_vk_pipeline_cache;
#endif

/* Where the pipelines are made. The instance was created for Vulkan 1.1 or newer. */
typedef struct kiln_vulkan_device {
    size_t struct_size;
    struct VkInstance_T *instance;
    struct VkPhysicalDevice_T *physical_device;
    struct VkDevice_T *device;
    /* The program's PFN_vkGetInstanceProcAddr; NULL: that of the system's loader. */
    void (*(*get_instance_proc_addr)(struct VkInstance_T *instance, const char *name))(void);
} kiln_vulkan_device;

/* The SPIR-V behind the shader module of one pipeline: a module does not reveal its own. */
typedef struct kiln_vulkan_code {
    const void *data;
    size_t size;
} kiln_vulkan_code;

/* vkCreateComputePipelines with what an earlier process made. `infos`, `codes` (the SPIR-V of the
 * modules in them, in the same order) and `out_pipelines` have `count` elements. All of one call is
 * one entry of the cache, so pipelines that are made together are best asked for together.
 * Threads: any; equal requests share one compile.   Blocks: disk, another's compile, driver.
 * Owns: borrows everything for the call; the pipelines are yours, vkDestroyPipeline(). `cache`
 * NULL: the default cache, opened for the call.
 * Fails: KILN_E_INVALID, KILN_E_UNAVAILABLE (no loader, or an instance older than 1.1), what the
 * driver says (vendor_code is the VkResult); no pipeline is left behind then. A broken cache never
 * fails it. */
KILN_API KILN_MUST_CHECK kiln_status kiln_vulkan_create_compute_pipelines(
    kiln_cache *cache, const kiln_vulkan_device *device, size_t count,
    const struct VkComputePipelineCreateInfo *infos, const kiln_vulkan_code *codes,
    kiln_vk_pipeline *out_pipelines, kiln_diag *diag);

/* A VkPipelineCache with what was saved under `name` for this very device and driver, or an empty
 * one. `name` distinguishes programs and their parts (any text).
 * Threads: any.   Blocks: disk, driver.
 * Owns: *out_pipeline_cache is yours, vkDestroyPipelineCache(). `cache` as above.
 * Fails: as above. */
KILN_API KILN_MUST_CHECK kiln_status kiln_vulkan_pipeline_cache_load(
    kiln_cache *cache, const kiln_vulkan_device *device, const char *name,
    kiln_vk_pipeline_cache *out_pipeline_cache, kiln_diag *diag);

/* Saves a VkPipelineCache, joined with what other processes saved under that name meanwhile; writes
 * nothing when nothing was added. Over `max_bytes` (0: 64 MiB) only the program's own is saved, and
 * nothing when that alone is larger.
 * Threads: any, also while pipelines are made with it.   Blocks: disk, driver.
 * Owns: borrows. `cache` as above.
 * Fails: as above. */
KILN_API KILN_MUST_CHECK kiln_status kiln_vulkan_pipeline_cache_save(
    kiln_cache *cache, const kiln_vulkan_device *device, const char *name,
    kiln_vk_pipeline_cache pipeline_cache, size_t max_bytes, kiln_diag *diag);

KILN_END_DECLS

#endif
