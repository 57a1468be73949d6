/* Compute pipelines by their content. A hit gives the driver a VkPipelineCache with what it made of
 * the same before; a miss gives it an empty one, whose data is stored. The driver is asked once,
 * with the program's own arguments, and what it answers is what the program gets. */
#include <stdlib.h>
#include <string.h>

#include "apis/vulkan/layer/device.h"
#include "base/checked.h"
#include "base/diag.h"
#include "base/stages.h"
#include "interpose/session.h"
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
    VkPipelineCache loaded; /* with what was stored; the driver may have added to it */
    bool made;              /* the driver was asked: `result` and `out` are what it gave */
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

static void compile_call(void *user, kn_output *output, kiln_diag *diag)
{
    compute_call *call = (compute_call *)user;
    kn_layer_device *device = call->device;
    VkPipelineCache cache = VK_NULL_HANDLE;
    output->outcome = KN_OUTCOME_FAILED;
    if (kn_vulkan_make_cache(&device->site, NULL, 0, &cache, diag) != KILN_OK) {
        return;
    }
    ask_for_compute(call, cache);
    if (call->result != VK_SUCCESS) {
        kn_ignore(kn_vk_fail(call->result, "vkCreateComputePipelines", diag));
    } else {
        output->blob = kn_vulkan_read_blob(&device->site, cache);
        output->reason = no_data;
        if (output->blob != NULL && kn_vulkan_is_filled(kiln_blob_size(output->blob))) {
            atomic_store(&device->barren, 0);
            output->outcome = KN_OUTCOME_STORED;
        } else {
            (void)atomic_fetch_add(&device->barren, 1);
            output->outcome = KN_OUTCOME_PRIVATE;
        }
    }
    device->site.destroy_cache(device->site.device, cache, NULL);
}

/* --- a hit ------------------------------------------------------------------------------------ */

/* An error may be due to what was loaded: the entry goes, and the driver is asked again. */
static kn_loaded load_call(void *user, kiln_blob *blob, kiln_diag *diag)
{
    compute_call *call = (compute_call *)user;
    kn_layer_device *device = call->device;
    const kn_vulkan_site *site = &device->site;
    if (kn_vulkan_make_cache(site, kiln_blob_data(blob), kiln_blob_size(blob), &call->loaded,
                             diag) != KILN_OK) {
        return KN_LOAD_REFUSED;
    }
    ask_for_compute(call, call->loaded);
    if (call->result >= VK_SUCCESS) {
        return KN_LOADED;
    }
    for (uint32_t i = 0; i < call->count; i++) {
        device->destroy_pipeline(site->device, call->out[i], call->allocator);
    }
    site->destroy_cache(site->device, call->loaded, NULL);
    call->loaded = VK_NULL_HANDLE;
    call->made = false;
    return KN_LOAD_REFUSED;
}

static const kn_frontend calls = {
    .compile = compile_call, .load = load_call, .driver_loads = true, .is_step = true};

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

/* What gave no pipelines, the driver is asked as it would have been without kiln. */
static void run_call(compute_call *call, uint64_t start)
{
    const kn_vulkan_site *site = &call->device->site;
    const bool glance = only_from_cache(call);
    const kn_request wanted = {.cache = site->cache,
                               .recipe = call->recipe,
                               .what = "vulkan",
                               .name = what,
                               .only_cached = glance,
                               .glance = glance};
    kn_job job;
    const kn_outcome outcome = kn_job_run(&job, &calls, &wanted, call);
    const bool stands = outcome == KN_OUTCOME_HIT || outcome == KN_OUTCOME_STORED;
    if (!call->made) {
        ask_for_compute(call, VK_NULL_HANDLE);
    } else if (outcome == KN_OUTCOME_HIT && call->result == VK_SUCCESS) {
        kn_vulkan_store_growth(site, call->recipe, job.blob, call->loaded);
    }
    site->destroy_cache(site->device, call->loaded, NULL);
    if (stands) {
        report_call(kiln_origin_name(job.origin), NULL, kn_clock_now() - start,
                    kn_job_saved_ns(&job));
    } else {
        const bool failed = call->result < VK_SUCCESS;
        report_call(failed ? "failed" : "bypassed", failed ? NULL : no_data, kn_clock_now() - start,
                    0);
    }
    kn_job_deinit(&job);
}

VkResult kn_layer_create_compute(kn_layer_device *device, uint32_t count,
                                 const VkComputePipelineCreateInfo *infos,
                                 const VkAllocationCallbacks *allocator, VkPipeline *out)
{
    compute_call call = {
        .device = device, .count = count, .infos = infos, .allocator = allocator, .out = out};
    const uint64_t start = kn_clock_now();
    const bool barren = atomic_load(&device->barren) >= BARREN_AFTER;
    if (barren || !kn_fp_is_default()) {
        return pass_call_on(&call, barren, barren ? no_data : KN_FP_REASON, start);
    }
    if (!describe_call(&call)) {
        return pass_call_on(&call, false, "its code is not known", start);
    }
    run_call(&call, start);
    kiln_recipe_destroy(call.recipe);
    return call.result;
}
