/* See pipelines.h. Data that is not whole ends the process: it must never have come here. */
#include "support/fakeicd/pipelines.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

fake_driver fake = {.vendor = 0x1234, .device = 0x5678};

static pthread_mutex_t fake_mutex = PTHREAD_MUTEX_INITIALIZER;

typedef struct fake_cache {
    uint64_t *ids;
    size_t count;
} fake_cache;

typedef struct fake_module {
    struct fake_module *next;
    uint64_t handle, hash;
} fake_module;
static fake_module *modules;

#define REAL(name) (fake.real != NULL ? (PFN_##name)fake.real(#name) : NULL)

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
    }
    return hash;
}

/* --- pipeline caches -------------------------------------------------------------------------- */

static void fill_record(unsigned char record[FAKE_RECORD], uint64_t id)
{
    for (size_t i = 0; i < FAKE_RECORD; i += sizeof(id)) {
        const uint64_t word = id + i;
        memcpy(record + i, &word, sizeof(word));
    }
}

static bool cache_has(const fake_cache *cache, uint64_t id)
{
    for (size_t i = 0; i < cache->count; i++) {
        if (cache->ids[i] == id) {
            return true;
        }
    }
    return false;
}

static void cache_add(fake_cache *cache, uint64_t id)
{
    if (!cache_has(cache, id)) {
        cache->ids = realloc(cache->ids, (cache->count + 1) * sizeof(*cache->ids));
        cache->ids[cache->count++] = id;
    }
}

static void read_records(fake_cache *cache, const unsigned char *data, size_t size)
{
    unsigned char whole[FAKE_RECORD];
    const size_t head = sizeof(VkPipelineCacheHeaderVersionOne);
    if (size < head || (size - head) % FAKE_RECORD != 0) {
        fputs("fakeicd: data of a pipeline cache is not whole\n", stderr);
        abort();
    }
    for (size_t at = head; at < size; at += FAKE_RECORD) {
        uint64_t id = 0;
        memcpy(&id, data + at, sizeof(id));
        fill_record(whole, id);
        if (memcmp(whole, data + at, FAKE_RECORD) != 0) {
            fputs("fakeicd: data of a pipeline cache is damaged\n", stderr);
            abort();
        }
        cache_add(cache, id);
    }
}

/* As drivers do with what is another's. */
static bool has_our_header(const void *data, size_t size)
{
    VkPipelineCacheHeaderVersionOne header;
    if (size < sizeof(header)) {
        return false;
    }
    memcpy(&header, data, sizeof(header));
    return header.vendorID == fake.vendor && header.deviceID == fake.device &&
           memcmp(header.pipelineCacheUUID, fake.uuid, VK_UUID_SIZE) == 0;
}

static VkResult VKAPI_CALL fake_vkCreatePipelineCache(VkDevice device,
                                                      const VkPipelineCacheCreateInfo *info,
                                                      const VkAllocationCallbacks *allocator,
                                                      VkPipelineCache *out)
{
    (void)device;
    (void)allocator;
    fake_cache *cache = calloc(1, sizeof(*cache));
    if (info->initialDataSize > 0) {
        const bool ours = has_our_header(info->pInitialData, info->initialDataSize);
        fake.with_data += ours;
        fake.refused_data += !ours;
        if (ours) {
            read_records(cache, info->pInitialData, info->initialDataSize);
        }
    }
    *out = (VkPipelineCache)(uintptr_t)cache;
    return VK_SUCCESS;
}

static void VKAPI_CALL fake_vkDestroyPipelineCache(VkDevice device, VkPipelineCache handle,
                                                   const VkAllocationCallbacks *allocator)
{
    fake_cache *cache = (fake_cache *)(uintptr_t)handle;
    (void)device;
    (void)allocator;
    if (cache != NULL) {
        free(cache->ids);
        free(cache);
    }
}

static VkResult VKAPI_CALL fake_vkGetPipelineCacheData(VkDevice device, VkPipelineCache handle,
                                                       size_t *size, void *data)
{
    const fake_cache *cache = (const fake_cache *)(uintptr_t)handle;
    VkPipelineCacheHeaderVersionOne header = {
        .headerSize = sizeof(header),
        .headerVersion = VK_PIPELINE_CACHE_HEADER_VERSION_ONE,
        .vendorID = fake.vendor,
        .deviceID = fake.device,
    };
    (void)device;
    memcpy(header.pipelineCacheUUID, fake.uuid, VK_UUID_SIZE);
    (void)pthread_mutex_lock(&fake_mutex);
    const size_t count = fake.makes_none ? 0 : cache->count;
    const size_t whole = sizeof(header) + count * FAKE_RECORD;
    VkResult result = VK_SUCCESS;
    if (data != NULL && *size < whole) {
        result = VK_INCOMPLETE;
    } else if (data != NULL) {
        memcpy(data, &header, sizeof(header));
        for (size_t i = 0; i < count; i++) {
            fill_record((unsigned char *)data + sizeof(header) + i * FAKE_RECORD, cache->ids[i]);
        }
    }
    *size = whole;
    (void)pthread_mutex_unlock(&fake_mutex);
    return result;
}

static VkResult VKAPI_CALL fake_vkMergePipelineCaches(VkDevice device, VkPipelineCache to,
                                                      uint32_t count, const VkPipelineCache *from)
{
    const struct timespec pause = {fake.merge_ms / 1000, fake.merge_ms % 1000 * 1000000L};
    (void)device;
    if (fake.merge_ms > 0) {
        (void)nanosleep(&pause, NULL);
    }
    (void)pthread_mutex_lock(&fake_mutex);
    for (uint32_t i = 0; i < count; i++) {
        const fake_cache *source = (const fake_cache *)(uintptr_t)from[i];
        for (size_t k = 0; k < source->count; k++) {
            cache_add((fake_cache *)(uintptr_t)to, source->ids[k]);
        }
    }
    (void)pthread_mutex_unlock(&fake_mutex);
    return VK_SUCCESS;
}

/* --- modules ---------------------------------------------------------------------------------- */

static VkResult VKAPI_CALL fake_vkCreateShaderModule(VkDevice device,
                                                     const VkShaderModuleCreateInfo *info,
                                                     const VkAllocationCallbacks *allocator,
                                                     VkShaderModule *out)
{
    PFN_vkCreateShaderModule real = REAL(vkCreateShaderModule);
    const VkResult result = real != NULL ? real(device, info, allocator, out) : VK_SUCCESS;
    if (result != VK_SUCCESS) {
        return result;
    }
    fake_module *module = calloc(1, sizeof(*module));
    if (real == NULL) {
        *out = (VkShaderModule)(uintptr_t)module;
    }
    module->handle = (uint64_t)*out;
    module->hash = hash_bytes(UINT64_C(14695981039346656037), info->pCode, info->codeSize);
    (void)pthread_mutex_lock(&fake_mutex);
    module->next = modules;
    modules = module;
    (void)pthread_mutex_unlock(&fake_mutex);
    return VK_SUCCESS;
}

static void VKAPI_CALL fake_vkDestroyShaderModule(VkDevice device, VkShaderModule handle,
                                                  const VkAllocationCallbacks *allocator)
{
    PFN_vkDestroyShaderModule real = REAL(vkDestroyShaderModule);
    (void)pthread_mutex_lock(&fake_mutex);
    for (fake_module **at = &modules; *at != NULL; at = &(*at)->next) {
        fake_module *module = *at;
        if (module->handle == (uint64_t)handle) {
            *at = module->next;
            free(module);
            break;
        }
    }
    (void)pthread_mutex_unlock(&fake_mutex);
    if (real != NULL) {
        real(device, handle, allocator);
    }
}

static uint64_t module_hash(uint64_t hash, const VkPipelineShaderStageCreateInfo *stage)
{
    const VkSpecializationInfo *constants = stage->pSpecializationInfo;
    (void)pthread_mutex_lock(&fake_mutex);
    for (const fake_module *at = modules; at != NULL; at = at->next) {
        if (at->handle == (uint64_t)stage->module) {
            hash = hash_bytes(hash, &at->hash, sizeof(at->hash));
            break;
        }
    }
    (void)pthread_mutex_unlock(&fake_mutex);
    hash = hash_bytes(hash, stage->pName, strlen(stage->pName));
    return constants == NULL ? hash : hash_bytes(hash, constants->pData, constants->dataSize);
}

/* --- pipelines -------------------------------------------------------------------------------- */

static void write_line(const char *what, bool hit, bool has_cache)
{
    FILE *file = fake.log != NULL ? fopen(fake.log, "a") : NULL;
    if (file != NULL) {
        fprintf(file, "%s %s %s\n", what, hit ? "hit" : "miss", has_cache ? "cache" : "none");
        fclose(file);
    }
}

/* Whether one is to be made. */
static VkResult look_up(const char *what, VkPipelineCache handle, uint64_t id,
                        VkPipelineCreateFlags flags, const void *chain)
{
    fake_cache *cache = (fake_cache *)(uintptr_t)handle;
    (void)pthread_mutex_lock(&fake_mutex);
    const bool hit = cache != NULL && cache_has(cache, id);
    const bool refused =
        !hit && (flags & VK_PIPELINE_CREATE_FAIL_ON_PIPELINE_COMPILE_REQUIRED_BIT) != 0;
    const bool fails = !refused && fake.fail_next > 0;
    fake.fail_next -= fails;
    if (cache != NULL && !refused && !fails) {
        cache_add(cache, id);
    }
    (void)pthread_mutex_unlock(&fake_mutex);
    fake.hits += hit;
    fake.compiled += !hit && !refused && !fails;
    write_line(what, hit, cache != NULL);
    for (const VkBaseInStructure *at = chain; at != NULL; at = at->pNext) {
        if (at->sType == VK_STRUCTURE_TYPE_PIPELINE_CREATION_FEEDBACK_CREATE_INFO) {
            const VkPipelineCreationFeedbackCreateInfo *feedback = (const void *)at;
            feedback->pPipelineCreationFeedback->flags =
                VK_PIPELINE_CREATION_FEEDBACK_VALID_BIT |
                (hit ? VK_PIPELINE_CREATION_FEEDBACK_APPLICATION_PIPELINE_CACHE_HIT_BIT : 0);
        }
    }
    if (fails) {
        return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    }
    return refused ? VK_PIPELINE_COMPILE_REQUIRED : VK_SUCCESS;
}

/* A handle of this driver's own, or of an object that the real one makes. */
static VkResult own_pipeline(const VkAllocationCallbacks *allocator, VkPipeline *out)
{
    void *memory = allocator != NULL ? allocator->pfnAllocation(allocator->pUserData, 8, 8,
                                                                VK_SYSTEM_ALLOCATION_SCOPE_OBJECT)
                                     : malloc(8);
    *out = (VkPipeline)(uintptr_t)memory;
    return memory != NULL ? VK_SUCCESS : VK_ERROR_OUT_OF_HOST_MEMORY;
}

#define FAKE_PIPELINES(Type, what, hash_of)                                                        \
    static VkResult VKAPI_CALL fake_vkCreate##Type##Pipelines(                                     \
        VkDevice device, VkPipelineCache cache, uint32_t count,                                    \
        const Vk##Type##PipelineCreateInfo *infos, const VkAllocationCallbacks *allocator,         \
        VkPipeline *out)                                                                           \
    {                                                                                              \
        PFN_vkCreate##Type##Pipelines real = REAL(vkCreate##Type##Pipelines);                      \
        VkResult result = VK_SUCCESS;                                                              \
        for (uint32_t i = 0; i < count; i++) {                                                     \
            VkResult one =                                                                         \
                look_up(what, cache, hash_of(&infos[i]), infos[i].flags, infos[i].pNext);          \
            out[i] = VK_NULL_HANDLE;                                                               \
            if (one == VK_SUCCESS) {                                                               \
                one = real != NULL                                                                 \
                          ? real(device, VK_NULL_HANDLE, 1, &infos[i], allocator, &out[i])         \
                          : own_pipeline(allocator, &out[i]);                                      \
            }                                                                                      \
            result = result == VK_SUCCESS ? one : result;                                          \
        }                                                                                          \
        return result;                                                                             \
    }

static uint64_t hash_compute(const VkComputePipelineCreateInfo *info)
{
    return module_hash(1, &info->stage);
}

static uint64_t hash_graphics(const VkGraphicsPipelineCreateInfo *info)
{
    uint64_t hash = 2;
    for (uint32_t i = 0; i < info->stageCount; i++) {
        hash = module_hash(hash, &info->pStages[i]);
    }
    return hash;
}

FAKE_PIPELINES(Compute, "compute", hash_compute)
FAKE_PIPELINES(Graphics, "graphics", hash_graphics)

static VkResult VKAPI_CALL fake_vkCreateRayTracingPipelinesKHR(
    VkDevice device, VkDeferredOperationKHR operation, VkPipelineCache cache, uint32_t count,
    const VkRayTracingPipelineCreateInfoKHR *infos, const VkAllocationCallbacks *allocator,
    VkPipeline *out)
{
    VkResult result = VK_SUCCESS;
    (void)device;
    for (uint32_t i = 0; i < count; i++) {
        const VkResult one = look_up("rays", cache, module_hash(3, &infos[i].pStages[0]),
                                     infos[i].flags, infos[i].pNext);
        out[i] = VK_NULL_HANDLE;
        result = one == VK_SUCCESS ? own_pipeline(allocator, &out[i]) : one;
    }
    return result == VK_SUCCESS && operation != VK_NULL_HANDLE ? VK_OPERATION_NOT_DEFERRED_KHR
                                                               : result;
}

static void VKAPI_CALL fake_vkDestroyPipeline(VkDevice device, VkPipeline pipeline,
                                              const VkAllocationCallbacks *allocator)
{
    PFN_vkDestroyPipeline real = REAL(vkDestroyPipeline);
    void *memory = (void *)(uintptr_t)pipeline;
    if (real != NULL) {
        real(device, pipeline, allocator);
    } else if (allocator != NULL && memory != NULL) {
        allocator->pfnFree(allocator->pUserData, memory);
    } else {
        free(memory);
    }
}

/* --- objects that only have to be there, without a real driver -------------------------------- */

#define FAKE_OBJECT(Type)                                                                          \
    static VkResult VKAPI_CALL fake_vkCreate##Type(                                                \
        VkDevice device, const Vk##Type##CreateInfo *info, const VkAllocationCallbacks *allocator, \
        Vk##Type *out)                                                                             \
    {                                                                                              \
        (void)device;                                                                              \
        (void)info;                                                                                \
        (void)allocator;                                                                           \
        *out = (Vk##Type)(uintptr_t)malloc(8);                                                     \
        return VK_SUCCESS;                                                                         \
    }                                                                                              \
    static void VKAPI_CALL fake_vkDestroy##Type(VkDevice device, Vk##Type object,                  \
                                                const VkAllocationCallbacks *allocator)            \
    {                                                                                              \
        (void)device;                                                                              \
        (void)allocator;                                                                           \
        free((void *)(uintptr_t)object);                                                           \
    }
FAKE_OBJECT(Sampler)
FAKE_OBJECT(DescriptorSetLayout)
FAKE_OBJECT(PipelineLayout)

PFN_vkVoidFunction fake_find(const char *name)
{
#define FAKE(name) {#name, (PFN_vkVoidFunction)fake_##name},
    static const struct {
        const char *name;
        PFN_vkVoidFunction call;
    } always[] = {FAKE(vkCreatePipelineCache) FAKE(vkDestroyPipelineCache)
                      FAKE(vkGetPipelineCacheData) FAKE(vkMergePipelineCaches)
                          FAKE(vkCreateShaderModule) FAKE(vkDestroyShaderModule)
                              FAKE(vkCreateComputePipelines) FAKE(vkCreateGraphicsPipelines)
                                  FAKE(vkDestroyPipeline)},
      alone[] = {FAKE(vkCreateSampler) FAKE(vkDestroySampler) FAKE(vkCreateDescriptorSetLayout)
                     FAKE(vkDestroyDescriptorSetLayout) FAKE(vkCreatePipelineLayout)
                         FAKE(vkDestroyPipelineLayout) FAKE(vkCreateRayTracingPipelinesKHR)};
#undef FAKE
    for (size_t i = 0; i < sizeof(always) / sizeof(*always); i++) {
        if (strcmp(name, always[i].name) == 0) {
            return always[i].call;
        }
    }
    for (size_t i = 0; fake.real == NULL && i < sizeof(alone) / sizeof(*alone); i++) {
        if (strcmp(name, alone[i].name) == 0) {
            return alone[i].call;
        }
    }
    return NULL;
}
