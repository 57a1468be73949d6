/* Keeps dictionaries. This file must not know packets, nor remotes. */
#include "store/remote/dictionaries.h"

#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#include "base/checked.h"
#include "base/stages.h"
#include "key/recipe.h"

void kn_dictionaries_init(kn_dictionaries *set, kn_tier near)
{
    memset(set, 0, sizeof *set);
    set->near = near;
    kn_mutex_init(&set->mutex);
}

static void destroy_dictionary(kn_dictionary *one)
{
    if (one != NULL) {
        (void)ZSTD_freeDDict(one->unpack);
        (void)ZSTD_freeCDict(one->pack);
        kiln_blob_release(one->content);
        free(one);
    }
}

void kn_dictionaries_deinit(kn_dictionaries *set)
{
    for (size_t i = 0; i < set->count; i++) {
        destroy_dictionary(set->list[i]);
    }
    set->count = 0;
    kn_mutex_deinit(&set->mutex);
}

kiln_status kn_dictionary_recipe(const void *content, size_t size, kiln_recipe **out_recipe,
                                 kiln_diag *diag)
{
    kiln_recipe *recipe = NULL;
    *out_recipe = NULL;
    kiln_status status = kiln_recipe_create(KN_STAGE_AT(kiln_dictionary), &recipe, diag);
    if (status == KILN_OK) {
        status = kiln_recipe_set_target(recipe, KN_WIRE_TARGET, diag);
    }
    if (status == KILN_OK) {
        status = kiln_recipe_add_bytes(recipe, "content", content, size, diag);
    }
    if (status != KILN_OK) {
        kiln_recipe_destroy(recipe);
        return status;
    }
    *out_recipe = recipe;
    return KILN_OK;
}

/* With the mutex held. */
static kn_dictionary *find_kept(const kn_dictionaries *set, const kiln_key *key)
{
    for (size_t i = 0; i < set->count; i++) {
        if (memcmp(&set->list[i]->key, key, sizeof *key) == 0) {
            return set->list[i];
        }
    }
    return NULL;
}

static kn_dictionary *make_dictionary(const kiln_key *key, kiln_blob *content)
{
    kn_dictionary *one = calloc(1, sizeof *one);
    if (one == NULL) {
        return NULL;
    }
    one->key = *key;
    one->content = kiln_blob_retain(content);
    one->unpack = ZSTD_createDDict(kiln_blob_data(content), kiln_blob_size(content));
    if (one->unpack == NULL) {
        destroy_dictionary(one);
        return NULL;
    }
    return one;
}

/* Keeps it, unless another thread did meanwhile. */
static const kn_dictionary *keep_dictionary(kn_dictionaries *set, const kiln_key *key,
                                            kiln_blob *content)
{
    kn_dictionary *mine = make_dictionary(key, content);
    kn_mutex_lock(&set->mutex);
    kn_dictionary *kept = find_kept(set, key);
    if (kept == NULL && mine != NULL && set->count < KN_DICTIONARIES) {
        kept = set->list[set->count++] = mine;
        mine = NULL;
    }
    kn_mutex_unlock(&set->mutex);
    destroy_dictionary(mine);
    return kept;
}

/* The recipe of what is what its key says; NULL otherwise. */
static kiln_recipe *prove_key(const kiln_key *key, const kiln_blob *content)
{
    kiln_recipe *recipe = NULL;
    if (kiln_blob_size(content) > KN_DICTIONARY_LIMIT ||
        kn_dictionary_recipe(kiln_blob_data(content), kiln_blob_size(content), &recipe, NULL) !=
            KILN_OK) {
        return NULL;
    }
    const kiln_key own = kiln_recipe_key(recipe);
    if (memcmp(&own, key, sizeof own) != 0) {
        kiln_recipe_destroy(recipe);
        return NULL;
    }
    return recipe;
}

/* A packet may name any key: what lies there under it need not be a dictionary. */
static const kn_dictionary *find_in_tier(kn_dictionaries *set, const kiln_key *key)
{
    kiln_blob *content = NULL;
    const kn_dictionary *found = NULL;
    if (set->near.ops == NULL ||
        set->near.ops->get(set->near.self, key, KN_WIRE_TARGET, &content, NULL) != KILN_OK) {
        return NULL;
    }
    kiln_recipe *recipe = prove_key(key, content);
    if (recipe != NULL) {
        found = keep_dictionary(set, key, content);
    }
    kiln_recipe_destroy(recipe);
    kiln_blob_release(content);
    return found;
}

const kn_dictionary *kn_dictionaries_find(kn_dictionaries *set, const kiln_key *key)
{
    kn_mutex_lock(&set->mutex);
    const kn_dictionary *found = find_kept(set, key);
    kn_mutex_unlock(&set->mutex);
    return found != NULL ? found : find_in_tier(set, key);
}

const kn_dictionary *kn_dictionaries_keep(kn_dictionaries *set, const kiln_key *key,
                                          kiln_blob *content)
{
    kiln_recipe *recipe = prove_key(key, content);
    const kn_dictionary *kept = recipe != NULL ? keep_dictionary(set, key, content) : NULL;
    if (kept != NULL && set->near.ops != NULL && (set->near.ops->caps & KN_TIER_WRITES) != 0) {
        const kn_tier_put what = {.key = key,
                                  .target = KN_WIRE_TARGET,
                                  .recipe = kn_recipe_span(recipe),
                                  .blob = content};
        /* Without it the next process asks again. */
        kn_ignore(set->near.ops->put(set->near.self, &what, NULL));
    }
    kiln_recipe_destroy(recipe);
    return kept;
}

bool kn_dictionaries_ready(kn_dictionaries *set, const kn_dictionary *dictionary)
{
    kn_mutex_lock(&set->mutex);
    kn_dictionary *kept = find_kept(set, &dictionary->key);
    if (kept != NULL && kept->pack == NULL) {
        kept->pack = ZSTD_createCDict(kiln_blob_data(kept->content), kiln_blob_size(kept->content),
                                      KN_DICTIONARY_LEVEL);
    }
    const bool ready = kept != NULL && kept->pack != NULL;
    kn_mutex_unlock(&set->mutex);
    return ready;
}
