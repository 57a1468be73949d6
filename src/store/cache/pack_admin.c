/* Looking at a pack and copying out of it, into a cache and into another pack: the public half of
 * pack.c. */
#include "store/pack/pack.h"

#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/text.h"
#include "key/recipe.h"
#include "sized/sized.h"
#include "store/cache/cache.h"
#include "store/format/blob.h"
#include "store/pack/pack_write.h"

const kiln_pack_info *kiln_pack_get_info(const kiln_pack *pack)
{
    return &pack->info;
}

/* Entry `index`, verified and unpacked. */
static kiln_status load_at(kiln_pack *pack, uint64_t index, kn_pack_record *out_record,
                           kiln_blob **out_blob, kiln_diag *diag)
{
    kiln_key key;
    kn_span bytes;
    *out_blob = NULL;
    kiln_status status = kn_pack_record_at(pack, index, &key, &bytes, diag);
    if (status == KILN_OK) {
        status = kn_pack_record_parse(bytes, &key, out_record, diag);
    }
    return status == KILN_OK ? kn_pack_load(pack, out_record, out_blob, diag) : status;
}

/* --- walk ------------------------------------------------------------------------------------- */

static kiln_status visit_one(const kn_pack_record *record, const kiln_blob *blob,
                             const char *target, kiln_entry_fn *visit, void *user, kiln_diag *diag)
{
    char *recipe = kn_text_copy_n(blob->recipe.data, blob->recipe.length);
    if (recipe == NULL) {
        return kn_no_memory(diag, "walking through a pack");
    }
    const kiln_entry_info info = {.struct_size = sizeof info,
                                  .key = record->key,
                                  .target = target,
                                  .recipe = recipe,
                                  .stored_size = KN_PACK_RECORD + record->body.length,
                                  .payload_size = record->payload_size,
                                  .facts_size = record->facts_size,
                                  .created_ns = record->created_ns,
                                  .compile_ns = record->compile_ns,
                                  .kiln_version = record->writer};
    kiln_status status = visit(user, &info);
    free(recipe);
    return status;
}

kiln_status kiln_pack_walk(kiln_pack *pack, const char *target, kiln_entry_fn *visit, void *user,
                           kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    for (uint64_t i = 0; status == KILN_OK && i < pack->trailer.count; i++) {
        kn_pack_record record;
        kiln_blob *blob = NULL;
        char own[KN_NAME_SIZE];
        status = load_at(pack, i, &record, &blob, diag);
        if (status == KILN_OK) {
            kn_recipe_target_in(blob->recipe, own);
            if (target == NULL || strcmp(own, target) == 0) {
                status = visit_one(&record, blob, own, visit, user, diag);
            }
        }
        kiln_blob_release(blob);
    }
    return status;
}

/* --- verify ----------------------------------------------------------------------------------- */

/* Keys ascend, and the fan-out says where each first byte ends. */
static bool index_is_ordered(const kiln_pack *pack)
{
    uint64_t at = 0;
    for (unsigned byte = 0; byte < KN_PACK_FANOUT; byte++) {
        for (; at < pack->trailer.fanout[byte]; at++) {
            const char *key = pack->keys + at * KN_PACK_KEY;
            if ((unsigned char)key[0] != byte ||
                (at > 0 && memcmp(key - KN_PACK_KEY, key, KN_PACK_KEY) >= 0)) {
                return false;
            }
        }
    }
    return true;
}

static kiln_status verify_index(const kiln_pack *pack, kiln_diag *diag)
{
    const kn_span index =
        kn_span_of(pack->keys, (size_t)(pack->trailer.count * (KN_PACK_KEY + KN_PACK_PLACE)));
    unsigned char sum[KN_CHECKSUM_SIZE];
    kn_checksum(&index, 1, sum);
    if (memcmp(sum, pack->trailer.index_sum, sizeof sum) != 0 || !index_is_ordered(pack)) {
        return kiln_diag_set(diag, KILN_E_CORRUPT, "make the pack again", pack->path,
                             "its index is damaged");
    }
    return KILN_OK;
}

kiln_status kiln_pack_verify(kiln_pack *pack, kiln_verify_result *out_result, kiln_diag *diag)
{
    kn_span dictionary;
    kiln_verify_result result;
    kiln_status status = kn_sized_begin(KN_SIZED(kiln_verify_result), out_result, &result, diag);
    if (status == KILN_OK) {
        status = verify_index(pack, diag);
    }
    if (status == KILN_OK) {
        status = kn_pack_dictionary(pack, &dictionary, diag);
    }
    if (status != KILN_OK) {
        return status;
    }
    for (uint64_t i = 0; status == KILN_OK && i < pack->trailer.count; i++) {
        kn_pack_record record;
        kiln_blob *blob = NULL;
        status = load_at(pack, i, &record, &blob, diag);
        bool good = status == KILN_OK && kn_recipe_proves(blob->recipe, &record.key);
        result.entries_good += good;
        result.entries_bad += !good;
        result.bytes += status == KILN_OK ? KN_PACK_RECORD + record.body.length : 0;
        kiln_blob_release(blob);
        status = status == KILN_E_CORRUPT ? KILN_OK : status;
    }
    kn_sized_end(KN_SIZED(kiln_verify_result), &result, out_result);
    return status;
}

/* --- copying ---------------------------------------------------------------------------------- */

/* Where the entries of a pack go. `copy` counts what it added and what was there. */
typedef struct destination {
    kiln_status (*copy)(struct destination *to, kn_pack_record *record, kiln_blob *blob,
                        const char *target, kiln_diag *diag);
    kiln_cache *cache;        /* one of the two */
    kiln_pack_writer *writer; /* or the other */
    kiln_pack_copied copied;
} destination;

/* One entry, unless it is damaged, of another target, or a note of one machine. */
static kiln_status copy_entry(kiln_pack *pack, uint64_t index, const char *target, destination *to,
                              kiln_diag *diag)
{
    kn_pack_record record;
    kiln_blob *blob = NULL;
    char own[KN_NAME_SIZE];
    kiln_status status = load_at(pack, index, &record, &blob, diag);
    if (status == KILN_E_CORRUPT) {
        to->copied.skipped++;
        status = KILN_OK;
    } else if (status == KILN_OK) {
        kn_recipe_target_in(blob->recipe, own);
        const bool wanted = target == NULL || strcmp(own, target) == 0;
        if (wanted &&
            (!kn_recipe_proves(blob->recipe, &record.key) || kn_recipe_is_note(blob->recipe))) {
            to->copied.skipped++;
        } else if (wanted) {
            status = to->copy(to, &record, blob, own, diag);
        }
    }
    kiln_blob_release(blob);
    return status;
}

static kiln_status copy_entries(kiln_pack *pack, const char *target, destination *to,
                                kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    for (uint64_t i = 0; status == KILN_OK && i < pack->trailer.count; i++) {
        status = copy_entry(pack, i, target, to, diag);
    }
    return status;
}

/* --- extract ---------------------------------------------------------------------------------- */

static kiln_status copy_to_cache(destination *to, kn_pack_record *record, kiln_blob *blob,
                                 const char *target, kiln_diag *diag)
{
    kiln_cache *cache = to->cache;
    if (kn_disk_locate(cache->disk, &record->key) != NULL) {
        to->copied.present++; /* fresher than what was shipped, or the same */
        return KILN_OK;
    }
    const kn_tier_put what = {
        .key = &record->key, .target = target, .recipe = blob->recipe, .blob = blob};
    kiln_status status = kn_disk_ops.put(cache->disk, &what, diag);
    kn_stats_add(cache->stats, status == KILN_OK ? KN_COUNT_puts : KN_COUNT_put_failures, 1);
    to->copied.added += status == KILN_OK;
    return status;
}

static kiln_status check_destination(const kiln_cache *cache, kiln_diag *diag)
{
    if (cache->disk == NULL) {
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE, NULL, "the cache has no disk tier", "%s",
                             cache->disk_reason);
    }
    if (cache->disk->read_only) {
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, "unset KILN_READONLY", "extracting a pack",
                             "the cache is open read-only");
    }
    return KILN_OK;
}

kiln_status kiln_pack_extract(kiln_pack *pack, kiln_cache *cache, const char *target,
                              kiln_pack_copied *out_copied, kiln_diag *diag)
{
    destination to = {.copy = copy_to_cache, .cache = cache};
    kn_cache_check_fork(cache);
    kiln_status status = kn_sized_begin(KN_SIZED(kiln_pack_copied), out_copied, &to.copied, diag);
    if (status == KILN_OK) {
        status = check_destination(cache, diag);
    }
    if (status == KILN_OK) {
        status = verify_index(pack, diag);
    }
    if (status != KILN_OK) {
        return status;
    }
    status = copy_entries(pack, target, &to, diag);
    kn_cache_flush(cache);
    kn_sized_end(KN_SIZED(kiln_pack_copied), &to.copied, out_copied);
    return status;
}

/* --- merge ------------------------------------------------------------------------------------ */

static kiln_status copy_to_pack(destination *to, kn_pack_record *record, kiln_blob *blob,
                                const char *target, kiln_diag *diag)
{
    bool added = false;
    (void)target;
    record->flags = 0; /* the other pack's dictionary stays there */
    kiln_status status = kn_pack_writer_take(to->writer, record, kn_blob_whole(blob), &added, diag);
    to->copied.added += added;
    to->copied.present += status == KILN_OK && !added;
    return status;
}

kiln_status kiln_pack_writer_add_pack(kiln_pack_writer *writer, kiln_pack *pack, const char *target,
                                      kiln_pack_copied *out_copied, kiln_diag *diag)
{
    destination to = {.copy = copy_to_pack, .writer = writer};
    kn_span dictionary;
    kiln_status status = kn_sized_begin(KN_SIZED(kiln_pack_copied), out_copied, &to.copied, diag);
    if (status == KILN_OK) {
        status = verify_index(pack, diag);
    }
    if (status == KILN_OK) {
        status = kn_pack_dictionary(pack, &dictionary, diag);
    }
    if (status != KILN_OK) {
        return status;
    }
    status = copy_entries(pack, target, &to, diag);
    kn_sized_end(KN_SIZED(kiln_pack_copied), &to.copied, out_copied);
    return status;
}
