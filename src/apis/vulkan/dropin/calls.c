/* Level 2: Vulkan pipelines through the cache. Whatever goes into vkCreatePipelineCache here was
 * verified by the store and has the header of this device and driver. */
#include "kiln/vulkan.h"

#include <stdlib.h>
#include <string.h>

#include "apis/vulkan/dropin/data.h"
#include "base/diag.h"
#include "base/stages.h"
#include "engine/job.h"
#include "key/recipe.h"
#include "sized/sized.h"
#include "sys/fpstate.h"

/* One call: the device described, its functions, the recipe begun. */
typedef struct request {
    kn_vulkan_site site;
    kiln_cache *own_cache; /* opened for this call */
    kn_dylib *loader;
    PFN_vkCreateComputePipelines create_pipelines;
    PFN_vkDestroyPipeline destroy_pipeline;
    kiln_recipe *recipe;
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
        r->create_pipelines =
            (PFN_vkCreateComputePipelines)find(where->device, "vkCreateComputePipelines");
        r->destroy_pipeline = (PFN_vkDestroyPipeline)find(where->device, "vkDestroyPipeline");
        missing = kn_vulkan_bind(&r->site, find);
        if (missing == NULL && r->create_pipelines == NULL) {
            missing = "vkCreateComputePipelines";
        }
        if (missing == NULL && r->destroy_pipeline == NULL) {
            missing = "vkDestroyPipeline";
        }
        vk->api_version = VK_API_VERSION_1_1; /* what the instance must be, and no more is asked */
        kn_vk_physical_query(vk, where->physical_device, &r->site.physical);
    }
    free(vk);
    return missing == NULL ? KILN_OK
                           : kiln_diag_set(diag, KILN_E_UNAVAILABLE,
                                           "create the instance for Vulkan 1.1 or newer", what,
                                           "the instance has no %s", missing);
}

static kiln_status request_init(request *r, kiln_cache *cache, const kiln_vulkan_device *where,
                                const char *stage, uint32_t revision, kiln_diag *diag)
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
    r->site.cache = cache;
    r->site.device = where->device;
    if (cache == NULL) {
        status = kiln_cache_create(NULL, &r->own_cache, diag);
        r->site.cache = r->own_cache;
    }
    if (status == KILN_OK) {
        status = bind_device(r, where, diag);
    }
    if (status == KILN_OK) {
        status = kn_vulkan_recipe(&r->site, stage, revision, &r->recipe, diag);
    }
    if (status != KILN_OK) {
        request_deinit(r);
    }
    return status;
}

/* --- pipelines -------------------------------------------------------------------------------- */

typedef struct pipelines_call {
    request *r;
    size_t count;
    const VkComputePipelineCreateInfo *infos;
    VkPipeline *out;
    VkPipelineCache loaded; /* with what was stored; the driver may have added to it */
} pipelines_call;

/* Not all that makes a pipeline is in the key: the flags and pNext of the stage and the layout are
 * left out. What is stored is only a VkPipelineCache, in which the driver looks for what it is
 * asked for. */
static void add_pipeline(kiln_recipe *recipe, const VkComputePipelineCreateInfo *info,
                         const kiln_vulkan_code *code)
{
    const VkSpecializationInfo *constants = info->stage.pSpecializationInfo;
    const char *entry = info->stage.pName;
    kiln_recipe_add_bytes(recipe, "code", code->data, code->size);
    kn_recipe_add_string(recipe, "entry", entry);
    kiln_recipe_add_u64(recipe, "flags", info->flags);
    for (uint32_t i = 0; constants != NULL && i < constants->mapEntryCount; i++) {
        const VkSpecializationMapEntry *row = &constants->pMapEntries[i];
        kiln_recipe_add_u64(recipe, "constant", row->constantID);
        kiln_recipe_add_bytes(recipe, "value", (const char *)constants->pData + row->offset,
                              row->size);
    }
}

static kiln_status create_with_cache(const pipelines_call *call, VkPipelineCache cache,
                                     kiln_diag *diag)
{
    const request *r = call->r;
    VkResult result = r->create_pipelines(r->site.device, cache, (uint32_t)call->count, call->infos,
                                          NULL, call->out);
    if (result == VK_SUCCESS) {
        return KILN_OK;
    }
    for (size_t i = 0; i < call->count; i++) {
        r->destroy_pipeline(r->site.device, call->out[i], NULL);
        call->out[i] = VK_NULL_HANDLE;
    }
    return kn_vk_fail(result, "vkCreateComputePipelines", diag);
}

static void compile_pipelines(void *user, kn_output *output, kiln_diag *diag)
{
    const pipelines_call *call = (const pipelines_call *)user;
    const kn_vulkan_site *site = &call->r->site;
    VkPipelineCache cache = VK_NULL_HANDLE;
    output->outcome = KN_OUTCOME_FAILED;
    if (kn_vulkan_make_cache(site, NULL, 0, &cache, diag) == KILN_OK &&
        create_with_cache(call, cache, diag) == KILN_OK) {
        output->blob = kn_vulkan_read_blob(site, cache);
        output->outcome = output->blob != NULL ? KN_OUTCOME_STORED : KN_OUTCOME_PRIVATE;
        output->reason = "the driver returns no pipeline data";
    }
    site->destroy_cache(site->device, cache, NULL);
}

/* Pipelines with the help of stored data, to which any error but these two may be due. */
static kn_loaded load_pipelines(void *user, kiln_blob *blob, kiln_diag *diag)
{
    pipelines_call *call = (pipelines_call *)user;
    const kn_vulkan_site *site = &call->r->site;
    const void *data = kiln_blob_data(blob);
    const size_t size = kiln_blob_size(blob);
    VkPipelineCache cache = VK_NULL_HANDLE;
    if (kn_vk_cache_check(&site->physical.properties, data, size, diag) != KILN_OK) {
        return KN_LOAD_UNSOUND;
    }
    kiln_status status = kn_vulkan_make_cache(site, data, size, &cache, diag);
    if (status == KILN_OK) {
        status = create_with_cache(call, cache, diag);
    }
    if (status == KILN_OK) {
        call->loaded = cache;
        return KN_LOADED;
    }
    site->destroy_cache(site->device, cache, NULL);
    return status == KILN_E_NOMEM || status == KILN_E_DEVICE_LOST ? KN_LOAD_FAILED
                                                                  : KN_LOAD_REFUSED;
}

static const kn_frontend pipelines = {
    .compile = compile_pipelines, .load = load_pipelines, .driver_loads = true};

static kiln_status get_pipelines(pipelines_call *call, kiln_diag *diag)
{
    const kn_vulkan_site *site = &call->r->site;
    const kn_request wanted = {
        .cache = site->cache, .recipe = call->r->recipe, .what = "vulkan", .name = what};
    kn_job job;
    (void)kn_job_run(&job, &pipelines, &wanted, call);
    const kiln_status status = job.status;
    if (status != KILN_OK) {
        kn_diag_move(diag, &job.why);
    } else if (call->loaded != VK_NULL_HANDLE) {
        kn_vulkan_store_growth(site, call->r->recipe, job.blob, call->loaded);
    }
    site->destroy_cache(site->device, call->loaded, NULL);
    kn_job_deinit(&job);
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
    kiln_status status = request_init(&r, cache, device, KN_STAGE_AT(vulkan_pipelines), diag);
    if (status != KILN_OK) {
        return status;
    }
    for (size_t i = 0; i < count; i++) {
        add_pipeline(r.recipe, &call.infos[i], &codes[i]);
    }
    kn_fp_state fp;
    kn_fp_enter(&fp);
    status = get_pipelines(&call, diag);
    kn_fp_leave(&fp);
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
    kiln_status status = request_init(r, cache, device, KN_STAGE_AT(vulkan_pipeline_cache), diag);
    if (status != KILN_OK) {
        return status;
    }
    kn_recipe_add_string(r->recipe, "name", name);
    status = kiln_recipe_status(r->recipe, diag);
    if (status != KILN_OK) {
        request_deinit(r);
    }
    return status;
}

kiln_status kiln_vulkan_pipeline_cache_load(kiln_cache *cache, const kiln_vulkan_device *device,
                                            const char *name, VkPipelineCache *out_pipeline_cache,
                                            kiln_diag *diag)
{
    request r;
    VkPipelineCache made = VK_NULL_HANDLE;
    bool stored = false;
    *out_pipeline_cache = VK_NULL_HANDLE;
    kiln_status status = named_request(&r, cache, device, name, diag);
    if (status != KILN_OK) {
        return status;
    }
    status = kn_vulkan_open_stored(&r.site, r.recipe, &made, &stored, diag);
    if (status == KILN_OK) {
        *out_pipeline_cache = made;
    }
    request_deinit(&r);
    return status;
}

kiln_status kiln_vulkan_pipeline_cache_save(kiln_cache *cache, const kiln_vulkan_device *device,
                                            const char *name, VkPipelineCache pipeline_cache,
                                            size_t max_bytes, kiln_diag *diag)
{
    request r;
    kiln_status status = named_request(&r, cache, device, name, diag);
    if (status != KILN_OK) {
        return status;
    }
    status = kn_vulkan_save(&r.site, r.recipe, name, &pipeline_cache, 1,
                            max_bytes > 0 ? max_bytes : KN_VULKAN_SAVE_LIMIT, diag);
    request_deinit(&r);
    return status;
}
