/* Level 2: Vulkan pipelines through the cache. Whatever goes into vkCreatePipelineCache here was
 * verified by the store and has the header of this device and driver. */
#include "kiln/vulkan.h"

#include <stdlib.h>
#include <string.h>

#include "backends/vulkan/instance.h"
#include "base/checked.h"
#include "base/diag.h"
#include "base/log.h"
#include "base/text.h"
#include "core/runtime/target.h"
#include "sized/sized.h"
#include "store/cache/cache.h"
#include "sys/clock.h"

#define SAVE_LIMIT ((size_t)64 << 20)

/* One call: the device described, its functions, the recipe begun. */
typedef struct request {
    kiln_cache *cache;
    kiln_cache *own_cache; /* opened for this call */
    kn_dylib *loader;
    VkDevice device;
    kn_vk_physical physical;
    PFN_vkCreatePipelineCache create_cache;
    PFN_vkDestroyPipelineCache destroy_cache;
    PFN_vkGetPipelineCacheData get_data;
    PFN_vkMergePipelineCaches merge;
    PFN_vkCreateComputePipelines create_pipelines;
    PFN_vkDestroyPipeline destroy_pipeline;
    kiln_recipe *recipe;
    bool barred; /* what the store has must not be loaded */
} request;

static const char what[] = "a Vulkan pipeline";

static void request_deinit(request *r)
{
    kiln_recipe_destroy(r->recipe);
    kn_dylib_retire(r->loader);
    kiln_cache_destroy(r->own_cache);
}

static kiln_status find_loader(request *r, const kiln_vulkan_device *where,
                               PFN_vkGetInstanceProcAddr *out_get, kiln_diag *diag)
{
    static const char *const names[] = {"libvulkan.so.1", NULL};
    kiln_probe_outcome outcome = KILN_PROBE_READY;
    if (where->get_instance_proc_addr != NULL) {
        *out_get = (PFN_vkGetInstanceProcAddr)where->get_instance_proc_addr;
        return KILN_OK;
    }
    kiln_status status = kn_dylib_open(names, &r->loader, &outcome, diag);
    if (status == KILN_OK) {
        void *symbol = kn_dylib_symbol(r->loader, "vkGetInstanceProcAddr");
        memcpy(out_get, &symbol, sizeof(*out_get));
    }
    return status;
}

static kiln_status bind_device(request *r, const kiln_vulkan_device *where, kiln_diag *diag)
{
    PFN_vkGetInstanceProcAddr get = NULL;
    kiln_status status = find_loader(r, where, &get, diag);
    if (status != KILN_OK) {
        return status;
    }
    kn_vk *vk = (kn_vk *)calloc(1, sizeof(*vk));
    if (vk == NULL) {
        return kn_no_memory(diag, what);
    }
    const char *missing =
        get != NULL ? kn_vk_bind_instance(get, where->instance, &vk->fn) : "vkGetInstanceProcAddr";
    if (missing == NULL) {
        PFN_vkGetDeviceProcAddr find = vk->fn.vkGetDeviceProcAddr;
#define BIND(field, name)                                                                          \
    r->field = (PFN_##name)find(where->device, #name);                                             \
    missing = missing == NULL && r->field == NULL ? #name : missing;
        BIND(create_cache, vkCreatePipelineCache)
        BIND(destroy_cache, vkDestroyPipelineCache)
        BIND(get_data, vkGetPipelineCacheData)
        BIND(merge, vkMergePipelineCaches)
        BIND(create_pipelines, vkCreateComputePipelines)
        BIND(destroy_pipeline, vkDestroyPipeline)
#undef BIND
        vk->api_version = VK_API_VERSION_1_1; /* what the instance must be, and no more is asked */
        kn_vk_physical_query(vk, where->physical_device, &r->physical);
    }
    free(vk);
    return missing == NULL ? KILN_OK
                           : kiln_diag_set(diag, KILN_E_UNAVAILABLE,
                                           "create the instance for Vulkan 1.1 or newer", what,
                                           "the instance has no %s", missing);
}

static kiln_status begin_recipe(request *r, const char *stage, kiln_diag *diag)
{
    char target[64];
    kn_identity_sink sink;
    kn_text_putf(target, sizeof(target), "vulkan-%04x-%04x", r->physical.properties.vendorID,
                 r->physical.properties.deviceID);
    kiln_status status = kiln_recipe_create(stage, 1, &r->recipe, diag);
    if (status == KILN_OK) {
        status = kiln_recipe_set_target(r->recipe, target, diag);
    }
    if (status != KILN_OK) {
        return status;
    }
    sink = (kn_identity_sink){r->recipe, diag, KILN_OK};
    const kiln_identity identity = kn_identity_to_recipe(&sink);
    kn_vk_identify_driver(&r->physical, &identity);
    return sink.status;
}

static kiln_status request_init(request *r, kiln_cache *cache, const kiln_vulkan_device *where,
                                const char *stage, kiln_diag *diag)
{
    memset(r, 0, sizeof(*r));
    kiln_vulkan_device room;
    if (where == NULL) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, what, "there is no kiln_vulkan_device");
    }
    where = kn_sized_view(KN_SIZED(kiln_vulkan_device), where, &room, diag);
    if (where == NULL) {
        return KILN_E_INVALID;
    }
    if (where->instance == NULL || where->physical_device == NULL || where->device == NULL) {
        return kiln_diag_set(diag, KILN_E_INVALID, "fill all of kiln_vulkan_device", what,
                             "a handle is missing");
    }
    kiln_status status = KILN_OK;
    r->cache = cache;
    r->device = where->device;
    if (cache == NULL) {
        status = kiln_cache_create(NULL, &r->own_cache, diag);
        r->cache = r->own_cache;
    }
    if (status == KILN_OK) {
        status = bind_device(r, where, diag);
    }
    if (status == KILN_OK) {
        status = begin_recipe(r, stage, diag);
    }
    if (status != KILN_OK) {
        request_deinit(r);
    }
    return status;
}

/* --- VkPipelineCache to bytes and back -------------------------------------------------------- */

/* KILN_E_REJECTED where the data is not this driver's, or the driver will not have it. */
static kiln_status make_cache(const request *r, const void *data, size_t size,
                              VkPipelineCache *out_cache, kiln_diag *diag)
{
    const VkPipelineCacheCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
        .initialDataSize = size,
        .pInitialData = size > 0 ? data : NULL,
    };
    kiln_status status =
        size > 0 ? kn_vk_cache_check(&r->physical.properties, data, size, diag) : KILN_OK;
    if (status != KILN_OK) {
        return status;
    }
    VkResult result = r->create_cache(r->device, &info, NULL, out_cache);
    if (result == VK_SUCCESS) {
        return KILN_OK;
    }
    *out_cache = VK_NULL_HANDLE;
    status = kn_vk_fail(result, "vkCreatePipelineCache", diag);
    return size > 0 && status != KILN_E_NOMEM ? KILN_E_REJECTED : status;
}

/* malloc'ed; sound, or an error. */
static kiln_status read_cache(const request *r, VkPipelineCache cache, void **out_data,
                              size_t *out_size, kiln_diag *diag)
{
    size_t size = 0;
    VkResult result = VK_INCOMPLETE;
    void *data = NULL;
    /* It may grow between the two calls where another thread makes pipelines with it. */
    for (int tries = 0; tries < 8 && result == VK_INCOMPLETE; tries++) {
        free(data);
        data = NULL;
        result = r->get_data(r->device, cache, &size, NULL);
        if (result != VK_SUCCESS || size == 0) {
            break;
        }
        data = malloc(size);
        if (data == NULL) {
            return kn_no_memory(diag, what);
        }
        result = r->get_data(r->device, cache, &size, data);
    }
    kiln_status status = KILN_OK;
    if (result != VK_SUCCESS) {
        status = kn_vk_fail(result, "vkGetPipelineCacheData", diag);
    } else {
        status = kn_vk_cache_check(&r->physical.properties, data, data != NULL ? size : 0, diag);
    }
    if (status != KILN_OK) {
        free(data);
        return status;
    }
    *out_data = data;
    *out_size = size;
    return KILN_OK;
}

/* make_cache of what the store has. KILN_E_REJECTED without a diag where it is barred. */
static kiln_status load_cache(request *r, const kiln_blob *blob, kn_load *watch,
                              VkPipelineCache *out_cache, kiln_diag *diag)
{
    const kiln_key key = kiln_recipe_key(r->recipe);
    r->barred = !kn_cache_load_begin(r->cache, &key, what, watch);
    return r->barred ? KILN_E_REJECTED
                     : make_cache(r, kiln_blob_data(blob), kiln_blob_size(blob), out_cache, diag);
}

static void end_load(const request *r, const kn_load *watch)
{
    const kiln_key key = kiln_recipe_key(r->recipe);
    if (!r->barred) {
        kn_cache_load_end(r->cache, &key, watch);
    }
}

static void drop_refused(const request *r)
{
    const kiln_key key = kiln_recipe_key(r->recipe);
    if (!r->barred) {
        kn_cache_count_rejected(r->cache);
        kn_log(KILN_LOG_WARN, "Vulkan: the driver refused cached pipeline data; it is made again");
    }
    kn_ignore(kiln_cache_remove(r->cache, &key, NULL)); /* the new one replaces it anyway */
}

/* --- pipelines -------------------------------------------------------------------------------- */

typedef struct pipelines_call {
    request *r;
    size_t count;
    const VkComputePipelineCreateInfo *infos;
    VkPipeline *out;
    bool made; /* the compile callback ran: `out` is filled */
} pipelines_call;

/* Not all that makes a pipeline is in the key: the flags and pNext of the stage and the layout are
 * left out. What is stored is only a VkPipelineCache, in which the driver looks for what it is
 * asked for. */
static kiln_status add_pipeline(kiln_recipe *recipe, const VkComputePipelineCreateInfo *info,
                                const kiln_vulkan_code *code, kiln_diag *diag)
{
    const VkSpecializationInfo *constants = info->stage.pSpecializationInfo;
    const char *entry = info->stage.pName;
    kiln_status status = kiln_recipe_add_bytes(recipe, "code", code->data, code->size, diag);
    if (status == KILN_OK) {
        status = kiln_recipe_add_text(recipe, "entry", entry, strlen(entry), diag);
    }
    if (status == KILN_OK) {
        status = kiln_recipe_add_u64(recipe, "flags", info->flags, diag);
    }
    for (uint32_t i = 0; constants != NULL && i < constants->mapEntryCount && status == KILN_OK;
         i++) {
        const VkSpecializationMapEntry *row = &constants->pMapEntries[i];
        status = kiln_recipe_add_u64(recipe, "constant", row->constantID, diag);
        if (status == KILN_OK) {
            status = kiln_recipe_add_bytes(
                recipe, "value", (const char *)constants->pData + row->offset, row->size, diag);
        }
    }
    return status;
}

static kiln_status create_with_cache(const pipelines_call *call, VkPipelineCache cache,
                                     kiln_diag *diag)
{
    const request *r = call->r;
    VkResult result =
        r->create_pipelines(r->device, cache, (uint32_t)call->count, call->infos, NULL, call->out);
    if (result == VK_SUCCESS) {
        return KILN_OK;
    }
    for (size_t i = 0; i < call->count; i++) {
        r->destroy_pipeline(r->device, call->out[i], NULL);
        call->out[i] = VK_NULL_HANDLE;
    }
    return kn_vk_fail(result, "vkCreateComputePipelines", diag);
}

static kiln_status compile_pipelines(void *user, kiln_blob **out_blob, kiln_diag *diag)
{
    pipelines_call *call = (pipelines_call *)user;
    VkPipelineCache cache = VK_NULL_HANDLE;
    void *data = NULL;
    size_t size = 0;
    kiln_status status = make_cache(call->r, NULL, 0, &cache, diag);
    if (status == KILN_OK) {
        status = create_with_cache(call, cache, diag);
        call->made = status == KILN_OK;
    }
    if (status == KILN_OK) {
        status = read_cache(call->r, cache, &data, &size, NULL);
        if (status == KILN_OK) {
            status = kiln_blob_create(data, size, NULL, 0, out_blob, NULL);
        }
        if (status != KILN_OK) { /* the pipelines are there; only sharing them fails */
            status = kiln_diag_set(diag, KILN_E_CANCELLED, NULL, what,
                                   "the driver returns no pipeline data");
        }
    }
    free(data);
    call->r->destroy_cache(call->r->device, cache, NULL);
    return status;
}

/* Pipelines with the help of stored data; what the driver had to add is stored in its place. */
static kiln_status create_from(const pipelines_call *call, const kiln_blob *blob, kiln_diag *diag)
{
    request *r = call->r;
    VkPipelineCache cache = VK_NULL_HANDLE;
    size_t size = 0;
    kn_load watch;
    kiln_status status = load_cache(r, blob, &watch, &cache, diag);
    if (status == KILN_OK) {
        status = create_with_cache(call, cache, diag);
    }
    end_load(r, &watch);
    if (status == KILN_OK && r->get_data(r->device, cache, &size, NULL) == VK_SUCCESS &&
        size > kiln_blob_size(blob)) {
        void *data = NULL;
        kiln_blob *fresh = NULL;
        if (read_cache(r, cache, &data, &size, NULL) == KILN_OK &&
            kiln_blob_create(data, size, NULL, 0, &fresh, NULL) == KILN_OK) {
            /* The caller has its pipelines; the store logs its own errors. */
            kn_ignore(kiln_cache_put(r->cache, r->recipe, fresh, kiln_blob_compile_ns(blob), NULL));
        }
        kiln_blob_release(fresh);
        free(data);
    }
    r->destroy_cache(r->device, cache, NULL);
    return status;
}

static kiln_status get_pipelines(pipelines_call *call, kiln_diag *diag)
{
    const request *r = call->r;
    kiln_blob *blob = NULL;
    const uint64_t start = kn_clock_now();
    kiln_status status =
        kiln_cache_get_or_compile(r->cache, r->recipe, compile_pipelines, call, &blob, NULL, diag);
    if (status == KILN_OK && !call->made) {
        status = create_from(call, blob, diag);
        if (status == KILN_E_REJECTED) {
            kiln_diag_clear(diag);
            drop_refused(r);
            kiln_blob_release(blob);
            blob = NULL;
            status = kiln_cache_get_or_compile(r->cache, r->recipe, compile_pipelines, call, &blob,
                                               NULL, diag);
            if (status == KILN_OK && !call->made) {
                status = create_from(call, blob, diag);
            }
        }
    }
    kiln_blob_release(blob);
    if (status == KILN_E_CANCELLED || status == KILN_E_REJECTED) {
        kiln_diag_clear(diag);
        status = call->made ? KILN_OK : create_with_cache(call, VK_NULL_HANDLE, diag);
        kn_cache_count_bypass(r->cache, what, "the driver returns no pipeline data",
                              kn_clock_now() - start);
    }
    return status;
}

kiln_status kiln_vulkan_create_compute_pipelines(kiln_cache *cache,
                                                 const kiln_vulkan_device *device, size_t count,
                                                 const VkComputePipelineCreateInfo *infos,
                                                 const kiln_vulkan_code *codes,
                                                 VkPipeline *out_pipelines, kiln_diag *diag)
{
    request r;
    pipelines_call call = {.r = &r, .count = count, .infos = infos, .out = out_pipelines};
    if (count == 0 || count > 4096 || infos == NULL || codes == NULL || out_pipelines == NULL) {
        return kiln_diag_set(diag, KILN_E_INVALID, "ask for 1 to 4,096 pipelines", what,
                             "%zu pipelines, or a list is missing", count);
    }
    memset(out_pipelines, 0, count * sizeof(VkPipeline));
    kiln_status status = request_init(&r, cache, device, "vulkan.pipelines", diag);
    if (status != KILN_OK) {
        return status;
    }
    for (size_t i = 0; i < count && status == KILN_OK; i++) {
        status = add_pipeline(r.recipe, &call.infos[i], &codes[i], diag);
    }
    if (status == KILN_OK) {
        status = get_pipelines(&call, diag);
    }
    request_deinit(&r);
    return status;
}

/* --- a whole VkPipelineCache ------------------------------------------------------------------ */

static kiln_status named_request(request *r, kiln_cache *cache, const kiln_vulkan_device *device,
                                 const char *name, kiln_diag *diag)
{
    if (name == NULL || name[0] == '\0') {
        return kiln_diag_set(diag, KILN_E_INVALID, "name it after your program", "a pipeline cache",
                             "it has no name");
    }
    kiln_status status = request_init(r, cache, device, "vulkan.pipeline-cache", diag);
    if (status != KILN_OK) {
        return status;
    }
    status = kiln_recipe_add_text(r->recipe, "name", name, strlen(name), diag);
    if (status != KILN_OK) {
        request_deinit(r);
    }
    return status;
}

/* What is stored, or NULL. */
static kiln_blob *find_stored(const request *r)
{
    const kiln_key key = kiln_recipe_key(r->recipe);
    kiln_blob *blob = NULL;
    return kiln_cache_get(r->cache, &key, &blob, NULL, NULL) == KILN_OK ? blob : NULL;
}

/* The same with what other processes saved since this one last looked. */
static kiln_blob *find_saved(const request *r)
{
    const kiln_key key = kiln_recipe_key(r->recipe);
    kiln_blob *blob = NULL;
    return kn_cache_reread(r->cache, &key, &blob) == KILN_OK ? blob : NULL;
}

kiln_status kiln_vulkan_pipeline_cache_load(kiln_cache *cache, const kiln_vulkan_device *device,
                                            const char *name, VkPipelineCache *out_pipeline_cache,
                                            kiln_diag *diag)
{
    request r;
    VkPipelineCache made = VK_NULL_HANDLE;
    *out_pipeline_cache = VK_NULL_HANDLE;
    kiln_status status = named_request(&r, cache, device, name, diag);
    if (status != KILN_OK) {
        return status;
    }
    kiln_blob *blob = find_stored(&r);
    if (blob != NULL) {
        kn_load watch;
        status = load_cache(&r, blob, &watch, &made, diag);
        end_load(&r, &watch);
    } else {
        status = make_cache(&r, NULL, 0, &made, diag);
    }
    if (status == KILN_E_REJECTED) {
        kiln_diag_clear(diag);
        drop_refused(&r);
        status = make_cache(&r, NULL, 0, &made, diag);
    }
    if (status == KILN_OK) {
        *out_pipeline_cache = made;
    }
    kiln_blob_release(blob);
    request_deinit(&r);
    return status;
}

/* The program's data and what is stored, in one; the program's alone if that is unavailable or over
 * the limit. */
static kiln_status join_caches(request *r, VkPipelineCache own, const kiln_blob *stored,
                               size_t limit, void **out_data, size_t *out_size, kiln_diag *diag)
{
    VkPipelineCache both = VK_NULL_HANDLE;
    kiln_status status = KILN_E_REJECTED;
    kn_load watch;
    if (stored != NULL) {
        status = load_cache(r, stored, &watch, &both, NULL);
    }
    if (status == KILN_OK && r->merge(r->device, both, 1, &own) != VK_SUCCESS) {
        status = KILN_E_REJECTED;
    }
    if (stored != NULL) {
        end_load(r, &watch);
    }
    if (status == KILN_OK) {
        status = read_cache(r, both, out_data, out_size, NULL);
        if (status == KILN_OK && *out_size > limit) {
            free(*out_data);
            status = KILN_E_REJECTED;
        }
    }
    r->destroy_cache(r->device, both, NULL);
    return status == KILN_OK ? KILN_OK : read_cache(r, own, out_data, out_size, diag);
}

kiln_status kiln_vulkan_pipeline_cache_save(kiln_cache *cache, const kiln_vulkan_device *device,
                                            const char *name, VkPipelineCache pipeline_cache,
                                            size_t max_bytes, kiln_diag *diag)
{
    request r;
    void *data = NULL;
    size_t size = 0;
    kiln_blob *fresh = NULL;
    const size_t limit = max_bytes > 0 ? max_bytes : SAVE_LIMIT;
    kiln_status status = named_request(&r, cache, device, name, diag);
    if (status != KILN_OK) {
        return status;
    }
    kiln_blob *stored = find_saved(&r);
    status = join_caches(&r, pipeline_cache, stored, limit, &data, &size, diag);
    const bool same = status == KILN_OK && stored != NULL && data != NULL &&
                      size == kiln_blob_size(stored) &&
                      memcmp(data, kiln_blob_data(stored), size) == 0;
    if (status == KILN_OK && size > limit) {
        kn_log(KILN_LOG_WARN,
               "Vulkan: the pipeline cache '%s' is not saved: it has %zu bytes, at most %zu are "
               "allowed",
               name, size, limit);
    } else if (status == KILN_OK && !same) {
        status = kiln_blob_create(data, size, NULL, 0, &fresh, diag);
        if (status == KILN_OK) {
            status = kiln_cache_put(r.cache, r.recipe, fresh, 0, diag);
        }
    }
    kiln_blob_release(fresh);
    kiln_blob_release(stored);
    free(data);
    request_deinit(&r);
    return status;
}
