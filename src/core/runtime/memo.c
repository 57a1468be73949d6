/* Memos: entries of a stage of their own, named by a text. What comes back may be old, and the
 * backend checks it; a lost one costs its backend a lookup. */
#include "core/runtime/memo.h"

#include <stdlib.h>
#include <string.h>

#include "kiln/cache.h"

#include "base/checked.h"
#include "base/text.h"
#include "hal/artifact.h"
#include "key/recipe.h"
#include "store/cache/cache.h"

static kiln_status make_recipe(const char *name, kiln_recipe **out_recipe)
{
    kiln_status status = kiln_recipe_create("kiln.memo", 1, out_recipe, NULL);
    if (status == KILN_OK) {
        status = kiln_recipe_set_target(*out_recipe, "memo", NULL);
    }
    if (status == KILN_OK) {
        status = kiln_recipe_add_text(*out_recipe, "name", name, strlen(name), NULL);
    }
    return status;
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

void kn_memo_host(struct kiln_cache *cache, kiln_host *out_host)
{
    *out_host = kn_host;
    if (cache != NULL) {
        out_host->memo = cache;
        out_host->memo_get = memo_get;
        out_host->memo_put = memo_put;
    }
}
