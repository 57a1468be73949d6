/* Moves entries between a cache, or a pack, and remotes: the public half of kiln push and pull.
 * This file must not know what a server speaks. */
#include "kiln/unstable/remote.h"

#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/stages.h"
#include "key/recipe.h"
#include "store/cache/cache.h"
#include "store/format/blob.h"
#include "store/format/entry.h"
#include "store/pack/pack.h"
#include "store/remote/remotes.h"
#include "sys/clock.h"
#include "sys/env.h"

struct kiln_transfer {
    kiln_cache *cache;
    kn_stats *stats;
    kn_remotes *remotes;
    uint64_t sent, received;
    kiln_transfer_counts counts; /* what was last asked for */
};

/* --- open, close ------------------------------------------------------------------------------ */

kiln_status kiln_transfer_open(const char *list, kiln_cache *cache, kiln_transfer **out_transfer,
                               kiln_diag *diag)
{
    *out_transfer = NULL;
    kn_cache_check_fork(cache);
    list = list != NULL ? list : kn_env_get("KILN_REMOTE");
    kiln_transfer *transfer = calloc(1, sizeof *transfer);
    kn_stats *stats = calloc(1, sizeof *stats);
    if (transfer == NULL || stats == NULL) {
        free(transfer);
        free(stats);
        return kn_no_memory(diag, "opening remotes");
    }
    kn_stats_init(stats);
    transfer->stats = stats;
    transfer->cache = cache;
    kiln_status status =
        kn_remotes_open(list, stats, kn_cache_disk_root(cache), &transfer->remotes, diag);
    if (status == KILN_OK && (transfer->remotes == NULL || transfer->remotes->count == 0)) {
        status = kiln_diag_set(diag, KILN_E_UNAVAILABLE,
                               "set KILN_REMOTE, and install the modules of its kinds",
                               "opening remotes", "there is no remote that can be used");
    }
    if (status != KILN_OK) {
        kiln_transfer_close(transfer);
        return status;
    }
    *out_transfer = transfer;
    return KILN_OK;
}

void kiln_transfer_close(kiln_transfer *transfer)
{
    if (transfer == NULL) {
        return;
    }
    kn_remotes *remotes = transfer->remotes;
    kn_remotes_finish(remotes);
    for (size_t i = 0; remotes != NULL && i < remotes->count; i++) {
        kn_remote_close(remotes->list[i]);
    }
    kn_remotes_destroy(remotes);
    kn_stats_deinit(transfer->stats);
    free(transfer->stats);
    free(transfer);
}

const kiln_transfer_counts *kiln_transfer_get_counts(kiln_transfer *transfer)
{
    const kn_stats *stats = transfer->stats;
    transfer->counts =
        (kiln_transfer_counts){.struct_size = sizeof transfer->counts,
                               .sent = transfer->sent,
                               .received = transfer->received,
                               .bytes_out = kn_stats_own(stats, KN_COUNT_remote_bytes_out),
                               .bytes_in = kn_stats_own(stats, KN_COUNT_remote_bytes_in),
                               .raw_out = kn_stats_own(stats, KN_COUNT_remote_raw_out),
                               .raw_in = kn_stats_own(stats, KN_COUNT_remote_raw_in)};
    return &transfer->counts;
}

static kiln_status fail_remote(kiln_diag *diag, kiln_status status, const kn_remote *remote,
                               const char *why)
{
    return kiln_diag_set(diag, status, NULL, remote->url.shown, "%s",
                         why[0] != '\0' ? why : kiln_status_text(status));
}

/* --- out -------------------------------------------------------------------------------------- */

/* An entry that is near, with its recipe. */
static kiln_status load_from_pack(const kiln_transfer *transfer, kiln_pack *pack,
                                  const kiln_key *key, kiln_blob **out_blob, kiln_diag *diag)
{
    const kiln_cache *cache = transfer->cache;
    kiln_status status = KILN_MISS;
    *out_blob = NULL;
    if (pack != NULL) {
        status = kiln_pack_get(pack, key, out_blob, diag);
    } else {
        kn_entry entry;
        if (cache->disk != NULL) {
            status = kn_disk_load(cache->disk, key, &entry, out_blob, diag);
        }
        if (status == KILN_MISS && cache->packs != NULL) {
            status = kn_packs_ops.get(cache->packs, key, NULL, out_blob, diag);
        }
    }
    if (status == KILN_OK &&
        ((*out_blob)->recipe.length == 0 || kn_recipe_is_note((*out_blob)->recipe))) {
        kiln_blob_release(*out_blob);
        *out_blob = NULL;
        status = KILN_MISS;
    }
    return status;
}

/* Whether the remote has the entry with a signature that is trusted here. KILN_E_REJECTED: what it
 * has is something else, which would keep a signed entry from those who take no other. KILN_MISS:
 * it has nothing, or cannot be asked. */
static kiln_status find_signed_entry(kn_remote *remote, const kiln_key *key)
{
    const uint64_t start = kn_clock_now();
    const kn_trust strict = {.policy = KN_TRUST_SIGNED, .signer = remote->trust->signer};
    char why[KILN_REMOTE_WHY] = "";
    kiln_blob *blob = NULL;
    void *data = NULL;
    size_t size = 0;
    if (!remote->url.reads ||
        kn_remote_ask(remote, key, remote->url.upload_ms, &data, &size, why) != KILN_OK) {
        return KILN_MISS;
    }
    const kn_unpacking means = kn_remote_unpacking(remote, start, remote->url.upload_ms);
    kiln_status status = kn_trust_unseal(&strict, false, &means, key, data, size, &blob, NULL);
    kiln_blob_release(blob);
    return status == KILN_OK || status == KILN_E_NOMEM ? status : KILN_E_REJECTED;
}

/* `counted`: an entry of a program, as opposed to a list. */
static kiln_status give_entry(kn_remote *remote, const kn_tier_put *what, bool counted,
                              bool replace, kiln_diag *diag)
{
    void *data = NULL;
    size_t size = 0;
    char why[KILN_REMOTE_WHY] = "";
    if (!replace && kn_signer_signs(remote->trust->signer)) {
        const kiln_status found = find_signed_entry(remote, what->key);
        if (found == KILN_OK) {
            return KILN_OK;
        }
        replace = found == KILN_E_REJECTED;
    }
    kiln_status status = kn_trust_seal(remote->trust, what, &data, &size, diag);
    if (status != KILN_OK) {
        return status;
    }
    if (size > remote->url.server.max_bytes) {
        status = fail_remote(diag, KILN_E_INVALID, remote, "the entry is larger than max-bytes");
    } else {
        status = kn_remote_give(remote, what->key, data, size, replace, why);
        if (status != KILN_OK) {
            (void)fail_remote(diag, status, remote, why);
        } else if (counted) {
            kn_stats_add(remote->stats, KN_COUNT_remote_raw_out,
                         kn_remote_raw_size(what->blob, what->recipe.length));
        }
    }
    free(data);
    return status;
}

/* To each remote; the first failure is reported, and the others get it all the same. */
static kiln_status give_all(kiln_transfer *transfer, const kn_tier_put *what, bool counted,
                            bool replace, kiln_diag *diag)
{
    kiln_status result = KILN_OK;
    size_t writers = 0;
    for (size_t i = 0; i < transfer->remotes->count; i++) {
        kn_remote *remote = transfer->remotes->list[i];
        kiln_diag own = KILN_DIAG_INIT;
        if (!remote->url.writes) {
            continue;
        }
        writers++;
        kiln_status status = give_entry(remote, what, counted, replace, &own);
        if (status != KILN_OK && result == KILN_OK) {
            result = status;
            kn_diag_move(diag, &own);
        }
        kiln_diag_clear(&own);
    }
    return writers > 0 ? result
                       : kiln_diag_set(diag, KILN_E_UNAVAILABLE, NULL, "pushing",
                                       "every remote is read-only");
}

kiln_status kiln_transfer_push(kiln_transfer *transfer, kiln_pack *pack, const kiln_key *key,
                               bool replace, kiln_diag *diag)
{
    kiln_blob *blob = NULL;
    kiln_status status = load_from_pack(transfer, pack, key, &blob, diag);
    if (status != KILN_OK) {
        return status;
    }
    const kn_tier_put what = {.key = key, .recipe = blob->recipe, .blob = blob};
    status = give_all(transfer, &what, true, replace, diag);
    transfer->sent += status == KILN_OK;
    kiln_blob_release(blob);
    return status;
}

/* --- in --------------------------------------------------------------------------------------- */

static kiln_status take_entry(kn_remote *remote, const kiln_key *key, kiln_blob **out_blob,
                              kiln_diag *diag)
{
    const uint64_t start = kn_clock_now();
    char why[KILN_REMOTE_WHY] = "";
    void *data = NULL;
    size_t size = 0;
    *out_blob = NULL;
    kiln_status status = kn_remote_ask(remote, key, remote->url.upload_ms, &data, &size, why);
    if (status != KILN_OK) {
        return status == KILN_MISS ? status : fail_remote(diag, status, remote, why);
    }
    const kn_unpacking means = kn_remote_unpacking(remote, start, remote->url.upload_ms);
    status = kn_trust_unseal(remote->trust, remote->url.unsigned_native, &means, key, data, size,
                             out_blob, diag);
    if (status == KILN_OK) {
        kn_stats_add(remote->stats, KN_COUNT_remote_raw_in,
                     kn_remote_raw_size(*out_blob, (*out_blob)->recipe.length));
    }
    return status;
}

/* From the first that has it. A failure of one is reported when no other has it. */
static kiln_status take_any(kiln_transfer *transfer, const kiln_key *key, kiln_blob **out_blob,
                            kiln_diag *diag)
{
    kiln_status result = KILN_MISS;
    for (size_t i = 0; i < transfer->remotes->count; i++) {
        kn_remote *remote = transfer->remotes->list[i];
        kiln_diag own = KILN_DIAG_INIT;
        kiln_status status =
            remote->url.reads ? take_entry(remote, key, out_blob, &own) : KILN_MISS;
        if (status == KILN_OK) {
            kiln_diag_clear(&own);
            kiln_diag_clear(diag);
            return KILN_OK;
        }
        if (status != KILN_MISS && result == KILN_MISS) {
            result = status;
            kn_diag_move(diag, &own);
        }
        kiln_diag_clear(&own);
    }
    return result;
}

kiln_status kiln_transfer_pull(kiln_transfer *transfer, const kiln_key *key, bool *out_present,
                               kiln_diag *diag)
{
    kn_disk *disk = transfer->cache->disk;
    kiln_blob *blob = NULL;
    char target[KN_NAME_SIZE];
    if (out_present != NULL) {
        *out_present = false;
    }
    if (disk == NULL || disk->read_only) {
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE, NULL, "pulling",
                             "the cache has no disk that can be written to");
    }
    if (kn_disk_locate(disk, key) != NULL) {
        if (out_present != NULL) {
            *out_present = true;
        }
        return KILN_OK;
    }
    kiln_status status = take_any(transfer, key, &blob, diag);
    if (status != KILN_OK) {
        return status;
    }
    kn_recipe_target_in(blob->recipe, target);
    const kn_tier_put what = {.key = key, .target = target, .recipe = blob->recipe, .blob = blob};
    status = kn_recipe_is_note(blob->recipe) ? KILN_MISS : kn_disk_ops.put(disk, &what, diag);
    if (status == KILN_OK) {
        kn_stats_add(transfer->cache->stats, KN_COUNT_puts, 1);
        transfer->received++;
    }
    kiln_blob_release(blob);
    return status;
}

/* --- lists ------------------------------------------------------------------------------------ */

static kiln_status list_recipe(const char *name, kiln_recipe **out_recipe, kiln_diag *diag)
{
    *out_recipe = NULL;
    if (name == NULL || name[0] == '\0') {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, "a list of entries", "it has no name");
    }
    kiln_status status = kiln_recipe_create(KN_STAGE_AT(kiln_list), out_recipe, diag);
    if (status != KILN_OK) {
        return status;
    }
    kiln_recipe_set_target(*out_recipe, KN_WIRE_TARGET);
    kn_recipe_add_string(*out_recipe, "name", name);
    return kn_recipe_end(out_recipe, diag);
}

kiln_status kiln_transfer_push_list(kiln_transfer *transfer, const char *name, const kiln_key *keys,
                                    size_t count, kiln_diag *diag)
{
    kiln_recipe *recipe = NULL;
    kiln_blob *blob = NULL;
    if (count == 0) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, "a list of entries", "it is empty");
    }
    kiln_status status = list_recipe(name, &recipe, diag);
    if (status == KILN_OK) {
        status = kiln_blob_create(keys, count * sizeof *keys, NULL, 0, &blob, diag);
    }
    if (status == KILN_OK) {
        const kiln_key key = kiln_recipe_key(recipe);
        const kn_tier_put what = {.key = &key, .recipe = kn_recipe_span(recipe), .blob = blob};
        status = give_all(transfer, &what, false, true, diag);
    }
    kiln_blob_release(blob);
    kiln_recipe_destroy(recipe);
    return status;
}

kiln_status kiln_transfer_pull_list(kiln_transfer *transfer, const char *name, kiln_blob **out_keys,
                                    kiln_diag *diag)
{
    kiln_recipe *recipe = NULL;
    *out_keys = NULL;
    kiln_status status = list_recipe(name, &recipe, diag);
    if (status == KILN_OK) {
        const kiln_key key = kiln_recipe_key(recipe);
        status = take_any(transfer, &key, out_keys, diag);
    }
    kiln_recipe_destroy(recipe);
    if (status == KILN_OK && kiln_blob_size(*out_keys) % sizeof(kiln_key) != 0) {
        kiln_blob_release(*out_keys);
        *out_keys = NULL;
        status = kiln_diag_set(diag, KILN_E_CORRUPT, NULL, name, "the list is not a list of keys");
    }
    return status;
}
