/* Finds the stored recipe that is nearest to one, and says what became of a key. This file must not
 * know what a source or a device is. */
#include "kiln/unstable/explain.h"

#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/text.h"
#include "key/recipe.h"
#include "store/cache/cache.h"
#include "store/disk/losses.h"
#include "store/format/blob.h"
#include "store/format/entry.h"
#include "store/format/recipe_diff.h"

/* The recipe in question and the nearest one so far. */
typedef struct search {
    kiln_cache *cache;
    kiln_key key;
    kn_recipe_lines now;
    kn_span stage;
    uint64_t distance;
    char *nearest; /* its text, malloc'ed; NULL: none */
    kiln_key nearest_key;
    char nearest_target[KN_NAME_SIZE];
} search;

static kiln_status consider_entry(search *s, const kiln_key *key, kn_span recipe)
{
    kn_recipe_lines then;
    if (memcmp(key->bytes, s->key.bytes, sizeof key->bytes) == 0) {
        return KILN_OK;
    }
    if (!kn_recipe_split(recipe, &then)) {
        return KILN_E_NOMEM;
    }
    kiln_status status = KILN_OK;
    if (kn_span_equal(kn_recipe_value(&then, "stage"), s->stage)) {
        uint64_t distance = kn_recipe_distance(&then, &s->now);
        if (distance < s->distance) {
            char *copy = kn_text_copy_n(recipe.data, recipe.length);
            status = copy != NULL ? KILN_OK : KILN_E_NOMEM;
            if (copy != NULL) {
                free(s->nearest);
                s->nearest = copy;
                s->distance = distance;
                s->nearest_key = *key;
                kn_recipe_target_in(recipe, s->nearest_target);
            }
        }
    }
    kn_recipe_lines_deinit(&then);
    return status;
}

static kiln_status look_on_disk(void *user, const kiln_entry_info *info)
{
    search *s = user;
    kn_entry entry;
    kiln_blob *blob = NULL;
    kiln_status status = kn_disk_load(s->cache->disk, &info->key, &entry, &blob, NULL);
    if (status == KILN_OK) {
        status = consider_entry(s, &info->key, blob->recipe);
    }
    kiln_blob_release(blob);
    return status == KILN_E_NOMEM ? status
                                  : KILN_OK; /* a damaged one does not help and does no harm */
}

static kiln_status look_in_pack(void *user, const kiln_entry_info *info)
{
    return consider_entry(user, &info->key, kn_span_of_text(info->recipe));
}

static kiln_status find_nearest(search *s, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    if (s->cache->disk != NULL) {
        status = kiln_cache_walk(s->cache, NULL, look_on_disk, s, diag);
    }
    const kn_packs *packs = s->cache->packs;
    for (size_t i = 0; status == KILN_OK && packs != NULL && i < packs->count; i++) {
        status = kiln_pack_walk(packs->packs[i], NULL, look_in_pack, s, diag);
        status = status == KILN_E_CORRUPT ? KILN_OK : status;
    }
    return status;
}

static kiln_why why_of(const search *s, const kn_recipe_diff *diff, bool there)
{
    if (there) {
        return KILN_WHY_HIT;
    }
    switch (kn_losses_find(s->cache->root, &s->key)) {
    case KN_LOSS_EVICTED:
        return KILN_WHY_EVICTED;
    case KN_LOSS_CORRUPT:
        return KILN_WHY_CORRUPT;
    case KN_LOSS_NONE:
        break;
    }
    return s->nearest == NULL ? KILN_WHY_NEW : diff->why;
}

/* `recipe` NULL: all that is known is the key. */
static kiln_status explain_recipe(search *s, const char *recipe, bool there,
                                  kiln_explanation_fn *visit, void *user, kiln_diag *diag)
{
    kn_recipe_lines then = {NULL, 0};
    kn_recipe_diff difference = {.why = KILN_WHY_NEW};
    char stage[KN_NAME_SIZE] = "";
    kiln_status status = KILN_OK;
    s->distance = UINT64_MAX;
    if (recipe != NULL) {
        if (!kn_recipe_split(kn_span_of_text(recipe), &s->now)) {
            return kn_no_memory(diag, "explaining a miss");
        }
        s->stage = kn_recipe_value(&s->now, "stage");
        if (s->stage.length > 2 && s->stage.length < sizeof stage) {
            kn_text_putf(stage, sizeof stage, "%.*s", (int)s->stage.length - 2, s->stage.data + 1);
        }
        status = find_nearest(s, diag);
    }
    if (status == KILN_OK && s->nearest != NULL &&
        (!kn_recipe_split(kn_span_of_text(s->nearest), &then) ||
         !kn_recipe_compare(&then, &s->now, &difference))) {
        status = kn_no_memory(diag, "explaining a miss");
    }
    if (status == KILN_OK) {
        const kiln_explanation explanation = {.struct_size = sizeof explanation,
                                              .stage = stage,
                                              .why = why_of(s, &difference, there),
                                              .key = s->key,
                                              .recipe = recipe,
                                              .detail = "",
                                              .has_nearest = s->nearest != NULL,
                                              .nearest = s->nearest_key,
                                              .nearest_target = s->nearest_target,
                                              .differences = difference.list,
                                              .difference_count = difference.count};
        status = visit(user, &explanation);
    }
    kn_recipe_diff_deinit(&difference);
    kn_recipe_lines_deinit(&then);
    kn_recipe_lines_deinit(&s->now);
    free(s->nearest);
    return status;
}

kiln_status kiln_cache_explain(kiln_cache *cache, const kiln_recipe *recipe,
                               kiln_explanation_fn *visit, void *user, kiln_diag *diag)
{
    search s = {.cache = cache, .key = kiln_recipe_key(recipe)};
    bool there = false;
    kiln_cache_contains(cache, &s.key, 1, &there);
    return explain_recipe(&s, kiln_recipe_text(recipe), there, visit, user, diag);
}

typedef struct own_recipe {
    char *text;
} own_recipe;

static kiln_status keep_recipe(void *user, const kiln_entry_info *info)
{
    own_recipe *own = user;
    own->text = kn_text_copy(info->recipe);
    return own->text != NULL ? KILN_OK : KILN_E_NOMEM;
}

/* From disk or from a pack; *out_text is NULL where neither has it. */
static kiln_status recipe_of_key(kiln_cache *cache, const kiln_key *key, char **out_text,
                                 kiln_diag *diag)
{
    own_recipe own = {NULL};
    kiln_status status = kiln_cache_inspect(cache, key, keep_recipe, &own, diag);
    const kn_packs *packs = cache->packs;
    for (size_t i = 0; own.text == NULL && packs != NULL && i < packs->count; i++) {
        kiln_blob *blob = NULL;
        if (kiln_pack_get(packs->packs[i], key, &blob, NULL) == KILN_OK) {
            own.text = kn_text_copy_n(blob->recipe.data, blob->recipe.length);
            status = own.text != NULL ? KILN_OK : KILN_E_NOMEM;
        }
        kiln_blob_release(blob);
    }
    *out_text = own.text;
    return status == KILN_MISS || status == KILN_E_CORRUPT ? KILN_OK : status;
}

kiln_status kiln_cache_explain_key(kiln_cache *cache, const kiln_key *key,
                                   kiln_explanation_fn *visit, void *user, kiln_diag *diag)
{
    search s = {.cache = cache, .key = *key};
    char *text = NULL;
    kn_cache_check_fork(cache);
    kiln_status status = recipe_of_key(cache, key, &text, diag);
    if (status == KILN_OK) {
        status = explain_recipe(&s, text, text != NULL, visit, user, diag);
    }
    free(text);
    return status;
}
