/* See data.h. */
#include "apis/vulkan/dropin/data.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/diag.h"
#include "base/log.h"
#include "base/text.h"
#include "core/runtime/target.h"
#include "key/recipe.h"
#include "store/cache/update.h"

#define SAVE_PATIENCE UINT64_C(5000000000)

static const char what[] = "a Vulkan pipeline cache";

const char *kn_vulkan_bind(kn_vulkan_site *site, PFN_vkGetDeviceProcAddr find)
{
    const char *missing = NULL;
#define BIND(field, name)                                                                          \
    site->field = (PFN_##name)find(site->device, #name);                                           \
    missing = missing == NULL && site->field == NULL ? #name : missing;
    BIND(create_cache, vkCreatePipelineCache)
    BIND(destroy_cache, vkDestroyPipelineCache)
    BIND(get_data, vkGetPipelineCacheData)
    BIND(merge, vkMergePipelineCaches)
#undef BIND
    return missing;
}

kiln_status kn_vulkan_recipe(const kn_vulkan_site *site, const char *stage, uint32_t revision,
                             kiln_recipe **out_recipe, kiln_diag *diag)
{
    char target[64];
    kn_text_putf(target, sizeof(target), "vulkan-%04x-%04x", site->physical.properties.vendorID,
                 site->physical.properties.deviceID);
    kiln_status status = kiln_recipe_create(stage, revision, out_recipe, diag);
    if (status != KILN_OK) {
        return status;
    }
    const kiln_identity identity = kn_identity_to_recipe(*out_recipe);
    kiln_recipe_set_target(*out_recipe, target);
    kn_vk_identify_driver(&site->physical, &identity);
    return kn_recipe_end(out_recipe, diag);
}

/* --- VkPipelineCache to bytes and back -------------------------------------------------------- */

bool kn_vulkan_is_filled(size_t size)
{
    return size > sizeof(VkPipelineCacheHeaderVersionOne);
}

kiln_status kn_vulkan_make_cache(const kn_vulkan_site *site, const void *data, size_t size,
                                 VkPipelineCache *out_cache, kiln_diag *diag)
{
    return kn_vk_cache_create(site->create_cache, site->device, &site->physical.properties, data,
                              size, out_cache, diag);
}

kiln_status kn_vulkan_read_cache(const kn_vulkan_site *site, VkPipelineCache cache, void **out_data,
                                 size_t *out_size, kiln_diag *diag)
{
    return kn_vk_cache_read(site->get_data, site->device, &site->physical.properties, cache,
                            out_data, out_size, diag);
}

kiln_blob *kn_vulkan_read_blob(const kn_vulkan_site *site, VkPipelineCache cache)
{
    void *data = NULL;
    size_t size = 0;
    kiln_blob *blob = NULL;
    if (kn_vulkan_read_cache(site, cache, &data, &size, NULL) == KILN_OK) {
        kn_ignore(kiln_blob_create(data, size, NULL, 0, &blob, NULL)); /* NULL says it */
    }
    free(data);
    return blob;
}

void kn_vulkan_store_growth(const kn_vulkan_site *site, const kiln_recipe *recipe,
                            const kiln_blob *blob, VkPipelineCache cache)
{
    size_t size = 0;
    if (site->get_data(site->device, cache, &size, NULL) != VK_SUCCESS ||
        size <= kiln_blob_size(blob) || size > KN_VULKAN_SAVE_LIMIT) {
        return;
    }
    kiln_blob *fresh = kn_vulkan_read_blob(site, cache);
    if (fresh != NULL) { /* the caller has its pipelines; the store logs its own errors */
        kn_ignore(kiln_cache_put(site->cache, recipe, fresh, kiln_blob_compile_ns(blob), NULL));
    }
    kiln_blob_release(fresh);
}

/* --- loads ------------------------------------------------------------------------------------ */

typedef struct load {
    kn_load watch;
    bool quarantined;
} load;

/* An object with the data of an entry. KILN_E_REJECTED where the entry is quarantined, too. */
static kiln_status load_blob(const kn_vulkan_site *site, const kiln_key *key, const kiln_blob *blob,
                             load *out_load, VkPipelineCache *out_cache, kiln_diag *diag)
{
    out_load->quarantined = !kn_cache_load_begin(site->cache, key, what, &out_load->watch);
    return out_load->quarantined ? KILN_E_REJECTED
                                 : kn_vulkan_make_cache(site, kiln_blob_data(blob),
                                                        kiln_blob_size(blob), out_cache, diag);
}

static void end_load(const kn_vulkan_site *site, const kiln_key *key, const load *of)
{
    if (!of->quarantined) {
        kn_cache_load_end(site->cache, key, &of->watch);
    }
}

kiln_status kn_vulkan_open_stored(const kn_vulkan_site *site, const kiln_recipe *recipe,
                                  VkPipelineCache *out_cache, bool *out_stored, kiln_diag *diag)
{
    const kiln_key key = kiln_recipe_key(recipe);
    kiln_blob *blob = NULL;
    load one;
    kiln_status status = KILN_E_REJECTED;
    if (kn_cache_reread(site->cache, &key, &blob) == KILN_OK) {
        status = load_blob(site, &key, blob, &one, out_cache, diag);
        end_load(site, &key, &one);
        if (status == KILN_E_REJECTED && !one.quarantined) {
            kn_cache_count_rejected(site->cache);
            kn_log(KILN_LOG_WARN,
                   "Vulkan: the driver refused cached pipeline data; it is made again");
            kn_ignore(kiln_cache_remove(site->cache, &key, NULL)); /* the new one replaces it */
        }
    }
    kiln_blob_release(blob);
    *out_stored = status == KILN_OK;
    if (status == KILN_E_REJECTED) {
        kiln_diag_clear(diag);
        status = kn_vulkan_make_cache(site, NULL, 0, out_cache, diag);
    }
    return status;
}

/* --- saving ----------------------------------------------------------------------------------- */

typedef struct save_call {
    const kn_vulkan_site *site;
    const kiln_key *key;
    const char *name;
    const VkPipelineCache *caches;
    uint32_t count;
    size_t limit;
} save_call;

/* All objects' data and what is stored, in one; the first one's alone if that is unavailable or
 * over the limit. */
static kiln_status join_caches(const save_call *call, const kiln_blob *stored, void **out_data,
                               size_t *out_size, kiln_diag *diag)
{
    const kn_vulkan_site *site = call->site;
    VkPipelineCache all = VK_NULL_HANDLE;
    kiln_status status = KILN_OK;
    load one = {.quarantined = true};
    if (stored != NULL) {
        status = load_blob(site, call->key, stored, &one, &all, NULL);
    } else if (call->count > 1) {
        status = kn_vulkan_make_cache(site, NULL, 0, &all, NULL);
    } else {
        status = KILN_E_REJECTED; /* there is nothing to join */
    }
    if (status == KILN_OK &&
        site->merge(site->device, all, call->count, call->caches) != VK_SUCCESS) {
        status = KILN_E_REJECTED;
    }
    end_load(site, call->key, &one);
    if (status == KILN_OK) {
        status = kn_vulkan_read_cache(site, all, out_data, out_size, NULL);
        if (status == KILN_OK && *out_size > call->limit) {
            free(*out_data);
            *out_data = NULL;
            status = KILN_E_REJECTED;
        }
    }
    site->destroy_cache(site->device, all, NULL);
    return status == KILN_OK
               ? KILN_OK
               : kn_vulkan_read_cache(site, call->caches[0], out_data, out_size, diag);
}

static kiln_status change_saved(void *user, const kiln_blob *stored, kiln_blob **out_new,
                                kiln_diag *diag)
{
    const save_call *call = (const save_call *)user;
    void *data = NULL;
    size_t size = 0;
    kiln_status status = join_caches(call, stored, &data, &size, diag);
    const bool same = status == KILN_OK && stored != NULL && data != NULL &&
                      size == kiln_blob_size(stored) &&
                      memcmp(data, kiln_blob_data(stored), size) == 0;
    if (status == KILN_OK && size > call->limit) {
        kn_log(KILN_LOG_WARN,
               "Vulkan: the pipeline cache '%s' is not saved: it has %zu bytes, at most %zu are "
               "allowed",
               call->name, size, call->limit);
    } else if (status == KILN_OK && !same) {
        status = kiln_blob_create(data, size, NULL, 0, out_new, diag);
    }
    free(data);
    return status;
}

kiln_status kn_vulkan_save(const kn_vulkan_site *site, const kiln_recipe *recipe, const char *name,
                           const VkPipelineCache *caches, uint32_t count, size_t limit,
                           kiln_diag *diag)
{
    const kiln_key key = kiln_recipe_key(recipe);
    save_call call = {site, &key, name, caches, count, limit};
    const kn_cache_change change = {.change = change_saved, .user = &call};
    return kn_cache_update(site->cache, recipe, SAVE_PATIENCE, &change, diag);
}
