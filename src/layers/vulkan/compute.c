/* Compute pipelines by their content. A hit gives the driver a VkPipelineCache with what it made of
 * the same before; a miss gives it an empty one, whose data is stored. The driver is asked once,
 * with the program's own arguments, and what it answers is what the program gets. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/diag.h"
#include "base/stages.h"
#include "interpose/session.h"
#include "layers/vulkan/device.h"
#include "sys/clock.h"
#include "sys/fpstate.h"

static const char what[] = "a Vulkan pipeline";
static const char no_data[] = "the driver returns no pipeline data";

/* After so many pipelines in a row without data, no more of it is asked for. */
enum { BARREN_AFTER = 4 };

typedef struct compute_call {
    kn_layer_device *device;
    uint32_t count;
    const VkComputePipelineCreateInfo *infos;
    const VkAllocationCallbacks *allocator;
    VkPipeline *out;
    kiln_recipe *recipe;
    bool made; /* the driver was asked: `result` and `out` are what it gave */
    VkResult result;
} compute_call;

static void ask_for_compute(compute_call *call, VkPipelineCache cache)
{
    kn_layer_device *device = call->device;
    call->result = device->driver.vkCreateComputePipelines(device->site.device, cache, call->count,
                                                           call->infos, call->allocator, call->out);
    call->made = true;
}

static void report_call(const char *origin, const char *reason, uint64_t took_ns, uint64_t saved_ns)
{
    kn_session_report(&(kn_session_event){.what = "vulkan",
                                          .name = "compute",
                                          .origin = origin,
                                          .reason = reason,
                                          .took_ns = took_ns,
                                          .saved_ns = saved_ns});
}

/* --- a miss ----------------------------------------------------------------------------------- */

static kiln_status store_data(compute_call *call, VkPipelineCache cache, kiln_blob **out_blob,
                              kiln_diag *diag)
{
    void *data = NULL;
    size_t size = 0;
    kiln_status status = kn_vulkan_read_cache(&call->device->site, cache, &data, &size, NULL);
    if (status == KILN_OK && kn_vulkan_is_filled(size)) {
        atomic_store(&call->device->barren, 0);
        status = kiln_blob_create(data, size, NULL, 0, out_blob, diag);
    } else {
        (void)atomic_fetch_add(&call->device->barren, 1);
        status = kiln_diag_set(diag, KILN_E_CANCELLED, NULL, what, "%s", no_data);
    }
    free(data);
    return status;
}

static kiln_status compile_call(void *user, kiln_blob **out_blob, kiln_diag *diag)
{
    compute_call *call = (compute_call *)user;
    const kn_vulkan_site *site = &call->device->site;
    VkPipelineCache cache = VK_NULL_HANDLE;
    kiln_status status = kn_vulkan_make_cache(site, NULL, 0, &cache, diag);
    if (status == KILN_OK) {
        ask_for_compute(call, cache);
        status = call->result == VK_SUCCESS
                     ? store_data(call, cache, out_blob, diag)
                     : kn_vk_fail(call->result, "vkCreateComputePipelines", diag);
        site->destroy_cache(site->device, cache, NULL);
    }
    return status;
}

/* --- a hit ------------------------------------------------------------------------------------ */

/* What the driver had to add takes the place of what is stored. */
static void store_growth(const compute_call *call, const kiln_blob *blob, VkPipelineCache cache)
{
    const kn_vulkan_site *site = &call->device->site;
    void *data = NULL;
    size_t size = 0;
    kiln_blob *fresh = NULL;
    if (site->get_data(site->device, cache, &size, NULL) == VK_SUCCESS &&
        size > kiln_blob_size(blob) && size <= KN_VULKAN_SAVE_LIMIT &&
        kn_vulkan_read_cache(site, cache, &data, &size, NULL) == KILN_OK &&
        kiln_blob_create(data, size, NULL, 0, &fresh, NULL) == KILN_OK) {
        /* The program has its pipelines; the store logs its own errors. */
        kn_ignore(
            kiln_cache_put(site->cache, call->recipe, fresh, kiln_blob_compile_ns(blob), NULL));
    }
    kiln_blob_release(fresh);
    free(data);
}

/* An error may be due to what was loaded: the entry goes, and the driver is asked as it would have
 * been without kiln. */
static void ask_again(compute_call *call, const kn_vulkan_load *load)
{
    kn_layer_device *device = call->device;
    kn_vulkan_load_refused(&device->site, load);
    for (uint32_t i = 0; call->made && i < call->count; i++) {
        device->destroy_pipeline(device->site.device, call->out[i], call->allocator);
    }
    ask_for_compute(call, VK_NULL_HANDLE);
}

static void create_from(compute_call *call, const kiln_blob *blob)
{
    const kn_vulkan_site *site = &call->device->site;
    const kiln_key key = kiln_recipe_key(call->recipe);
    kn_vulkan_load load;
    VkPipelineCache cache = VK_NULL_HANDLE;
    if (kn_vulkan_load_begin(site, &key, blob, &load, &cache, NULL) == KILN_OK) {
        ask_for_compute(call, cache);
    }
    kn_vulkan_load_end(site, &load);
    if (!call->made || call->result < VK_SUCCESS) {
        ask_again(call, &load);
    } else if (call->result == VK_SUCCESS) {
        store_growth(call, blob, cache);
    }
    site->destroy_cache(site->device, cache, NULL);
}

/* --- both ------------------------------------------------------------------------------------- */

/* True where the driver is to refuse what it would have to compile: then nobody compiles it, and
 * nobody is waited for. */
static bool only_from_cache(const compute_call *call)
{
    const VkPipelineCreateFlags flags = VK_PIPELINE_CREATE_FAIL_ON_PIPELINE_COMPILE_REQUIRED_BIT;
    for (uint32_t i = 0; i < call->count; i++) {
        if (call->infos[i].flags & flags || kn_contents_flags2(&call->infos[i]) & flags) {
            return true;
        }
    }
    return false;
}

static kiln_origin look_up(compute_call *call, kiln_blob **out_blob)
{
    const kn_vulkan_site *site = &call->device->site;
    kiln_origin origin = KILN_ORIGIN_NONE;
    if (only_from_cache(call)) {
        const kiln_key key = kiln_recipe_key(call->recipe);
        kn_ignore(kn_cache_glance(site->cache, &key, NULL, false, out_blob, &origin));
    } else {
        /* Why a compile failed is in call->result. */
        kn_ignore(kiln_cache_get_or_compile(site->cache, call->recipe, compile_call, call, out_blob,
                                            &origin, NULL));
    }
    return origin;
}

static bool describe_call(compute_call *call)
{
    kn_layer_device *device = call->device;
    kiln_status status =
        kn_vulkan_recipe(&device->site, KN_STAGE_AT(vulkan_layer_pipelines), &call->recipe, NULL);
    for (uint32_t i = 0; i < call->count && status == KILN_OK; i++) {
        status = kn_contents_add_pipeline(&device->contents, &call->infos[i], call->recipe, NULL);
    }
    return status == KILN_OK;
}

/* Without a key: with what is kept for the program, if anything. */
static VkResult pass_call_on(compute_call *call, bool barren, const char *why, uint64_t start)
{
    kn_layer_kept *all = call->device->kept;
    const VkPipelineCache kept = barren ? VK_NULL_HANDLE : kn_layer_kept_cache(all);
    ask_for_compute(call, kept);
    kn_layer_kept_used(all, kept != VK_NULL_HANDLE ? call->count : 0);
    report_call("bypassed", why, kn_clock_now() - start, 0);
    kiln_recipe_destroy(call->recipe);
    return call->result;
}

VkResult kn_layer_create_compute(kn_layer_device *device, uint32_t count,
                                 const VkComputePipelineCreateInfo *infos,
                                 const VkAllocationCallbacks *allocator, VkPipeline *out)
{
    compute_call call = {device, count, infos, allocator, out, NULL, false, VK_SUCCESS};
    const uint64_t start = kn_clock_now();
    kiln_blob *blob = NULL;
    const bool barren = atomic_load(&device->barren) >= BARREN_AFTER;
    if (barren || !kn_fp_is_default()) {
        return pass_call_on(&call, barren, barren ? no_data : KN_FP_REASON, start);
    }
    if (!describe_call(&call)) {
        return pass_call_on(&call, false, "its code is not known", start);
    }
    const kiln_origin origin = look_up(&call, &blob);
    const uint64_t saved = blob != NULL && !call.made ? kiln_blob_compile_ns(blob) : 0;
    if (!call.made && blob != NULL) {
        create_from(&call, blob);
    } else if (!call.made) {
        ask_for_compute(&call, VK_NULL_HANDLE);
    }
    report_call(origin != KILN_ORIGIN_NONE ? kiln_origin_name(origin)
                                           : (call.result < VK_SUCCESS ? "failed" : "bypassed"),
                origin == KILN_ORIGIN_NONE && call.result >= VK_SUCCESS ? no_data : NULL,
                kn_clock_now() - start, saved);
    kiln_blob_release(blob);
    kiln_recipe_destroy(call.recipe);
    return call.result;
}
