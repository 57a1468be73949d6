/* Memos: entries of a stage of their own, named by a text. What comes back may be old, and the
 * backend checks it; a lost one costs its backend a lookup. */
#include "core/runtime/memo.h"

#include <stdlib.h>
#include <string.h>

#include "kiln/cache.h"

#include "base/checked.h"
#include "base/stages.h"
#include "base/text.h"
#include "hal/artifact.h"
#include "key/recipe.h"
#include "store/cache/cache.h"
#include "sys/clock.h"

#define LONGEST_WAIT_NS (UINT64_C(30) * 1000000000)

static kiln_status make_recipe(const char *name, kiln_recipe **out_recipe)
{
    kiln_status status = kiln_recipe_create(KN_STAGE_AT(kiln_memo), out_recipe, NULL);
    if (status != KILN_OK) {
        return status;
    }
    kiln_recipe_set_target(*out_recipe, "memo");
    kn_recipe_add_string(*out_recipe, "name", name);
    return kn_recipe_end(out_recipe, NULL);
}

static kiln_status memo_get(void *memo, const char *name, void **out_data, size_t *out_size)
{
    kiln_recipe *recipe = NULL;
    kiln_blob *blob = NULL;
    *out_data = NULL;
    *out_size = 0;
    kiln_status status = make_recipe(name, &recipe);
    if (status == KILN_OK) {
        kiln_key key = kiln_recipe_key(recipe);
        status = kn_cache_get_note((kiln_cache *)memo, &key, kn_recipe_target(recipe), &blob);
    }
    if (status == KILN_OK) {
        *out_data = kn_bytes_copy(kiln_blob_data(blob), kiln_blob_size(blob));
        *out_size = *out_data != NULL ? kiln_blob_size(blob) : 0;
        status = *out_data != NULL ? KILN_OK : KILN_E_NOMEM;
    }
    kiln_blob_release(blob);
    kiln_recipe_destroy(recipe);
    return status;
}

static void memo_put(void *memo, const char *name, const void *data, size_t size)
{
    kiln_recipe *recipe = NULL;
    kiln_blob *blob = NULL;
    kiln_status status = make_recipe(name, &recipe);
    if (status == KILN_OK) {
        status = kiln_blob_create(data, size, NULL, 0, &blob, NULL);
    }
    if (status == KILN_OK) {
        /* A memo that is not kept is one forgotten. */
        kn_ignore(kiln_cache_put((kiln_cache *)memo, recipe, blob, 0, NULL));
    }
    kiln_blob_release(blob);
    kiln_recipe_destroy(recipe);
}

/* A turn at what a memo saves. */
typedef struct memo_turn {
    kn_turn turn;
    kiln_cache *cache;
    kiln_recipe *recipe;
    kiln_key key;
} memo_turn;

static void memo_turn_destroy(memo_turn *turn)
{
    if (turn != NULL) {
        kiln_recipe_destroy(turn->recipe);
        free(turn);
    }
}

static bool is_memo_there(void *user)
{
    const memo_turn *turn = (const memo_turn *)user;
    kiln_blob *blob = NULL;
    kiln_origin origin = KILN_ORIGIN_NONE;
    const bool there = kn_cache_glance(turn->cache, &turn->key, kn_recipe_target(turn->recipe),
                                       false, &blob, &origin) == KILN_OK;
    kiln_blob_release(blob);
    return there;
}

static kiln_status memo_enter(void *memo, const char *name, void **out_turn)
{
    memo_turn *turn = (memo_turn *)calloc(1, sizeof(*turn));
    *out_turn = NULL;
    if (turn == NULL || make_recipe(name, &turn->recipe) != KILN_OK) {
        memo_turn_destroy(turn);
        return KILN_OK; /* nobody waits for this one */
    }
    turn->cache = (kiln_cache *)memo;
    turn->key = kiln_recipe_key(turn->recipe);
    if (!kn_cache_turn_begin(turn->cache, turn->key.bytes, kn_clock_now() + LONGEST_WAIT_NS,
                             is_memo_there, turn, &turn->turn)) {
        memo_turn_destroy(turn);
        return KILN_MISS;
    }
    *out_turn = turn;
    return KILN_OK;
}

static void memo_leave(void *memo, void *turn)
{
    memo_turn *own = (memo_turn *)turn;
    (void)memo;
    if (own != NULL) {
        kn_cache_turn_end(&own->turn);
    }
    memo_turn_destroy(own);
}

void kn_memo_host(struct kiln_cache *cache, kiln_host *out_host)
{
    *out_host = kn_host;
    if (cache != NULL) {
        out_host->memo = cache;
        out_host->memo_get = memo_get;
        out_host->memo_put = memo_put;
        out_host->memo_enter = memo_enter;
        out_host->memo_leave = memo_leave;
    }
}
