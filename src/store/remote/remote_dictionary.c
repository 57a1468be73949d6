/* Dictionaries of earlier versions, which packed entries with them. A dictionary is an entry of the
 * remote: sealed and verified like any other, and its key proves its content. It is kept in memory;
 * nothing is packed with one any more. */
#include "store/remote/remote.h"

#include <string.h>

#include "base/log.h"
#include "base/stages.h"
#include "key/recipe.h"
#include "store/format/blob.h"
#include "sys/clock.h"

#define DICTIONARY_LIMIT ((size_t)1 << 20)

/* A packet may name any key: what lies there under it need not be a dictionary. */
static bool is_dictionary(const kiln_key *key, const kiln_blob *content)
{
    kiln_recipe *recipe = NULL;
    kiln_key own = {{0}};
    const size_t size = kiln_blob_size(content);
    if (size > DICTIONARY_LIMIT ||
        kiln_recipe_create(KN_STAGE_AT(kiln_dictionary), &recipe, NULL) != KILN_OK) {
        return false;
    }
    kiln_recipe_set_target(recipe, KN_WIRE_TARGET);
    kiln_recipe_add_bytes(recipe, "content", kiln_blob_data(content), size);
    if (kiln_recipe_status(recipe, NULL) == KILN_OK) {
        own = kiln_recipe_key(recipe);
    }
    kiln_recipe_destroy(recipe);
    return memcmp(&own, key, sizeof own) == 0;
}

static kiln_blob *fetch_dictionary(kn_remote *remote, const kiln_key *key)
{
    const uint64_t start = kn_clock_now();
    char why[KILN_REMOTE_WHY];
    void *data = NULL;
    size_t size = 0;
    kiln_blob *blob = NULL;
    if (!kn_remote_may_ask(remote, key)) {
        return NULL;
    }
    kiln_status status = kn_remote_ask(remote, key, remote->url.limit_ms, &data, &size, why);
    if (status == KILN_OK) {
        kn_unpacking means = kn_remote_unpacking(remote, start, remote->url.limit_ms);
        means.find = NULL; /* it was never packed with another */
        status = kn_trust_unseal(remote->trust, false, &means, key, data, size, &blob, NULL);
        kn_remote_judge(remote, status);
        kn_stats_add(remote->stats, KN_COUNT_remote_refused, status == KILN_E_REJECTED);
    }
    if (status == KILN_OK && !is_dictionary(key, blob)) {
        kiln_blob_release(blob);
        blob = NULL;
    }
    if (blob == NULL) {
        kn_remote_remember_miss(remote, key);
        kn_log_once(KILN_LOG_INFO, "the dictionary of the remote %s is unavailable",
                    remote->url.shown);
    }
    return blob;
}

kiln_blob *kn_remote_dictionary(kn_remote *remote, const kiln_key *key)
{
    kiln_blob *found = NULL;
    kn_mutex_lock(&remote->mutex);
    for (size_t i = 0; i < KN_REMOTE_DICTIONARIES; i++) {
        const kn_remote_dictionary_row *row = &remote->dictionaries[i];
        if (row->content != NULL && memcmp(&row->key, key, sizeof *key) == 0) {
            found = kiln_blob_retain(row->content);
            break;
        }
    }
    kn_mutex_unlock(&remote->mutex);
    if (found != NULL || (found = fetch_dictionary(remote, key)) == NULL) {
        return found;
    }
    kn_mutex_lock(&remote->mutex);
    kn_remote_dictionary_row *row =
        &remote->dictionaries[remote->dictionary_at++ % KN_REMOTE_DICTIONARIES];
    kiln_blob_release(row->content);
    row->key = *key;
    row->content = kiln_blob_retain(found);
    kn_mutex_unlock(&remote->mutex);
    return found;
}
