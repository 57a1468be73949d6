/* The state of the vulkan backend and what the files of this directory share. Written against
 * Vulkan 1.1 from the distribution's headers; nothing is linked, every entry point comes from the
 * loader that is opened at run time. Knows no key and no store.
 *
 * Of queues, job.c has all but the copies (transfer.c) and launches (launch.c). */
#ifndef KILN_VULKAN_BACKEND_INSTANCE_H
#define KILN_VULKAN_BACKEND_INSTANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include "apis/vulkan/backend/pool.h"
#include "apis/vulkan/backend/spirv.h"
#include "hal/glsl.h"
#include "sys/dylib.h"
#include "sys/thread.h"

typedef struct kn_vk_instance_fn {
#define GLOBAL(name) PFN_##name name;
#define INSTANCE(name) PFN_##name name;
#include "apis/vulkan/backend/loader.def"
} kn_vk_instance_fn;

struct kn_vk_device_fn {
#define DEVICE(name) PFN_##name name;
#include "apis/vulkan/backend/loader.def"
};

/* shaderc's include callbacks (shaderc.h, shaderc_include_result). */
typedef struct kn_shaderc_include {
    const char *source_name;
    size_t source_name_length;
    const char *content;
    size_t content_length;
    void *user_data;
} kn_shaderc_include;
typedef kn_shaderc_include *kn_shaderc_resolve(void *user, const char *requested, int type,
                                               const char *requesting, size_t depth);
typedef void kn_shaderc_release(void *user, kn_shaderc_include *include);

typedef struct kn_shaderc {
#define X(since, need, ret, name, args) ret(*name) args;
#include "apis/vulkan/backend/shaderc.def"
#undef X
} kn_shaderc;

extern const kn_symbol kn_shaderc_symbols[];
extern const size_t kn_shaderc_symbol_count;

enum { KN_VK_MAX_DEVICES = 32, KN_VK_TARGET_SPIRV_1_3 = 0x010300 };

/* A listed device: queried once, at open. */
typedef struct kn_vk_physical {
    VkPhysicalDevice handle;
    VkPhysicalDeviceProperties properties;
    VkPhysicalDeviceIDProperties id;
    VkPhysicalDeviceDriverProperties driver; /* zero before 1.2 */
    VkPhysicalDeviceSubgroupProperties subgroup;
    kn_glsl_groups groups;
    uint32_t family;         /* of the queue that compute uses */
    uint32_t timestamp_bits; /* 0: the family has no time stamps */
} kn_vk_physical;

typedef struct kn_vk {
    const kiln_host *host;
    kn_dylib *loader;
    kn_vk_instance_fn fn;
    VkInstance instance;
    uint32_t api_version; /* of the instance */
    kn_vk_physical physical[KN_VK_MAX_DEVICES];
    uint32_t device_count;

    char shaderc_path[512]; /* "" if there is none */
    char shaderc_id[144];   /* build id of that file, and of what it needs */
    kn_mutex lock;          /* the fields below: shaderc is opened at the first compile */
    kn_dylib *shaderc_lib;
    kn_shaderc shaderc;
    void *shaderc_first; /* a compiler that nobody uses: glslang's tables of built-in functions are
                            made when the first one begins, and go with the last one */
} kn_vk;

typedef struct kn_vk_device {
    kn_vk *vk;
    const kn_vk_physical *physical;
    VkDevice handle;
    struct kn_vk_device_fn fn;
    VkQueue queue;
    kn_mutex queue_lock; /* VkQueue is externally synchronised */
    kn_vk_pool *memory;
} kn_vk_device;

typedef struct kn_vk_buffer {
    VkBuffer handle;
    kn_vk_memory memory;
    size_t size;
} kn_vk_buffer;

/* status.c: a VkResult as status and diag; `what` is the call. */
kiln_status kn_vk_fail(VkResult result, const char *what, kiln_diag *diag);

/* probe.c */
kiln_status kn_vk_open(const kiln_host *host, void **out_instance, kiln_probe_report *report,
                       kiln_diag *diag);
void kn_vk_close(void *instance);
/* Fills the instance's entry points; the name of the first that is missing, or NULL. */
const char *kn_vk_bind_instance(PFN_vkGetInstanceProcAddr get, VkInstance instance,
                                kn_vk_instance_fn *fn);

#define KN_OPERATION(name) kn_vk_##name
#include "hal/operations.h"

/* info.c: uses vk->fn and vk->api_version alone. */
void kn_vk_physical_query(const kn_vk *vk, VkPhysicalDevice handle, kn_vk_physical *out_physical);

/* glsl_version.c: the number after the first `#version` at the beginning of a line, comments apart,
 * as glslang finds it. 0: there is no such line, or no number in it. */
int kn_glsl_version(const char *text, size_t length);

/* glsl.c: finds shaderc by its file, opens it at the first compile, compiles GLSL to SPIR-V. */
void kn_vk_shaderc_find(kn_vk *vk);
kiln_status kn_vk_compile_glsl(kn_vk *vk, const kiln_compile_request *request,
                               kiln_artifact *artifact, kiln_diag *diag);

/* identity.c: what pipeline data depends on besides the shader. */
kiln_device_class kn_vk_class_of(VkPhysicalDeviceType type);
void kn_vk_identify_driver(const kn_vk_physical *physical, const kiln_identity *identity);

/* pipeline_cache.c: whether a VkPipelineCache's data was made for this very device and driver, by
 * the header that the specification gives it. KILN_E_REJECTED with the reason. */
kiln_status kn_vk_cache_check(const VkPhysicalDeviceProperties *properties, const void *data,
                              size_t size, kiln_diag *diag);
/* An object of the driver's with this data, or an empty one (NULL). KILN_E_REJECTED where the data
 * is not this driver's, or the driver will not have it. */
kiln_status kn_vk_cache_create(PFN_vkCreatePipelineCache create, VkDevice device,
                               const VkPhysicalDeviceProperties *properties, const void *data,
                               size_t size, VkPipelineCache *out_cache, kiln_diag *diag);
/* Its data, malloc'ed; sound, or an error. */
kiln_status kn_vk_cache_read(PFN_vkGetPipelineCacheData get, VkDevice device,
                             const VkPhysicalDeviceProperties *properties, VkPipelineCache cache,
                             void **out_data, size_t *out_size, kiln_diag *diag);

/* program.c: modules, layouts and pipelines; one pipeline an entry and work-group size. */
typedef struct kn_vk_pipeline {
    VkPipeline handle;
    const kn_spirv_entry *entry;
    uint32_t local[3];
} kn_vk_pipeline;

enum { KN_VK_MAX_PIPELINES = 256 };
typedef struct kn_vk_program {
    kn_vk_device *device;
    kn_spirv module;
    VkShaderModule shader;
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkPipelineCache cache;
    kn_mutex lock; /* pipelines, grew */
    kn_vk_pipeline *pipelines[KN_VK_MAX_PIPELINES];
    size_t pipeline_count;
    bool grew;
} kn_vk_program;
/* The pipeline for a launch; `local` of zeros lets it choose. KILN_E_INVALID for an unknown entry
 * or a work-group size that the shader fixes otherwise. */
kiln_status kn_vk_program_pipeline(kn_vk_program *program, const char *entry,
                                   const uint64_t local[3], const uint64_t global[3],
                                   const kn_vk_pipeline **out_pipeline, kiln_diag *diag);

/* memory.c: any buffer, storage or staging, by the properties its memory must have. */
kiln_status kn_vk_buffer_init(kn_vk_device *device, size_t size, VkMemoryPropertyFlags wanted,
                              kn_vk_buffer *out_buffer, kiln_diag *diag);
void kn_vk_buffer_deinit(kn_vk_device *device, kn_vk_buffer *buffer);

#endif
