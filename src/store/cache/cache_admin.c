/* Looking at a cache and keeping it small: the public half. The work is the disk tier's. */
#include "store/cache/cache.h"

#include "sized/sized.h"

kiln_status kn_cache_need_disk(const kiln_cache *cache, bool to_write, kiln_diag *diag)
{
    if (cache->disk == NULL) {
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE, NULL, "the cache has no disk tier", "%s",
                             cache->disk_reason);
    }
    if (to_write && cache->disk_reason[0] != '\0') {
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, NULL, "the cache is read-only", "%s",
                             cache->disk_reason);
    }
    if (to_write && cache->disk->read_only) {
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, "unset KILN_READONLY", "changing the cache",
                             "it is open read-only");
    }
    /* Nothing is removed below a root that was exchanged for a stranger's. */
    return to_write ? kn_disk_check_root(cache->disk, diag) : KILN_OK;
}

kiln_status kiln_cache_walk(kiln_cache *cache, const char *target, kiln_entry_fn *visit, void *user,
                            kiln_diag *diag)
{
    kn_cache_check_fork(cache);
    return cache->disk != NULL ? kn_disk_walk(cache->disk, target, visit, user, diag) : KILN_OK;
}

kiln_status kiln_cache_inspect(kiln_cache *cache, const kiln_key *key, kiln_entry_fn *visit,
                               void *user, kiln_diag *diag)
{
    kn_cache_check_fork(cache);
    return cache->disk != NULL ? kn_disk_inspect(cache->disk, key, visit, user, diag) : KILN_MISS;
}

void kiln_cache_get_temporaries(kiln_cache *cache, uint64_t *out_files, uint64_t *out_bytes)
{
    kn_disk_temporaries found = {0};
    kn_cache_check_fork(cache);
    if (cache->disk != NULL) {
        found = kn_disk_count_temporaries(cache->disk);
    }
    *out_files = found.files;
    *out_bytes = found.bytes;
}

kiln_status kiln_cache_examine(kiln_cache *cache, kiln_diag *diag)
{
    kn_cache_check_fork(cache);
    return cache->disk != NULL ? kn_disk_examine(cache->disk, diag) : KILN_OK;
}

/* `plan`: only counts what a prune would remove, which a cache that is only read can do, too. */
static kiln_status prune_cache(kiln_cache *cache, bool plan, const kiln_prune_options *options,
                               kiln_prune_result *out_result, kiln_diag *diag)
{
    kiln_prune_options room;
    kiln_prune_result result;
    kn_cache_check_fork(cache);
    kiln_status status = kn_sized_begin(KN_SIZED(kiln_prune_result), out_result, &result, diag);
    if (status != KILN_OK) {
        return status;
    }
    options = kn_sized_view(KN_SIZED(kiln_prune_options), options, &room, diag);
    status = options != NULL ? kn_cache_need_disk(cache, !plan, diag) : KILN_E_INVALID;
    if (status == KILN_OK) {
        status = plan ? kn_disk_prune_plan(cache->disk, options, &result, diag)
                      : kn_disk_prune(cache->disk, options, false, &result, diag);
    }
    kn_sized_end(KN_SIZED(kiln_prune_result), &result, out_result);
    return status;
}

kiln_status kiln_cache_prune(kiln_cache *cache, const kiln_prune_options *options,
                             kiln_prune_result *out_result, kiln_diag *diag)
{
    return prune_cache(cache, false, options, out_result, diag);
}

kiln_status kiln_cache_prune_plan(kiln_cache *cache, const kiln_prune_options *options,
                                  kiln_prune_result *out_result, kiln_diag *diag)
{
    return prune_cache(cache, true, options, out_result, diag);
}

kiln_status kiln_cache_clear(kiln_cache *cache, kiln_prune_result *out_result, kiln_diag *diag)
{
    kiln_prune_result result;
    kn_cache_check_fork(cache);
    kiln_status status = kn_sized_begin(KN_SIZED(kiln_prune_result), out_result, &result, diag);
    if (status == KILN_OK) {
        status = kn_cache_need_disk(cache, true, diag);
    }
    if (status != KILN_OK) {
        return status;
    }
    kn_mem_clear(cache->stack.memory);
    status = kn_disk_prune(cache->disk, NULL, true, &result, diag);
    kn_sized_end(KN_SIZED(kiln_prune_result), &result, out_result);
    return status;
}

kiln_status kiln_cache_verify(kiln_cache *cache, bool remove, kiln_verify_result *out_result,
                              kiln_diag *diag)
{
    kiln_verify_result result;
    kn_cache_check_fork(cache);
    kiln_status status = kn_sized_begin(KN_SIZED(kiln_verify_result), out_result, &result, diag);
    if (status == KILN_OK) {
        status = kn_cache_need_disk(cache, remove, diag);
    }
    if (status == KILN_OK) {
        status = kn_disk_verify(cache->disk, remove, &result, diag);
        kn_sized_end(KN_SIZED(kiln_verify_result), &result, out_result);
    }
    return status;
}
