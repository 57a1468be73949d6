/* Dictionaries that lie on a remote, and the entry there that says which one is in use. Both are
 * entries like any other: sealed, verified, refused by the same policy. */
#include "store/remote/remote.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/stages.h"
#include "key/recipe.h"
#include "store/format/blob.h"
#include "sys/clock.h"

/* An entry that says something about the remote itself: never packed with a dictionary. */
static kiln_blob *get_plain(kn_remote *remote, const kiln_key *key)
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
        means.find = NULL;
        status = kn_trust_unseal(remote->trust, false, &means, key, data, size, &blob, NULL);
        kn_remote_judge(remote, status);
        kn_stats_add(remote->stats, KN_COUNT_remote_refused, status == KILN_E_REJECTED);
    }
    if (status != KILN_OK) {
        kn_remote_remember_miss(remote, key);
    }
    return blob;
}

const kn_dictionary *kn_remote_dictionary(kn_remote *remote, const kiln_key *key)
{
    if (remote->dictionaries == NULL) {
        return NULL;
    }
    const kn_dictionary *found = kn_dictionaries_find(remote->dictionaries, key);
    kiln_blob *content = found == NULL ? get_plain(remote, key) : NULL;
    if (content != NULL) {
        found = kn_dictionaries_keep(remote->dictionaries, key, content);
        kiln_blob_release(content);
    }
    if (found == NULL) {
        kn_log_once(KILN_LOG_INFO, "the dictionary of the remote %s is unavailable",
                    remote->url.shown);
    }
    return found;
}

/* --- the current one -------------------------------------------------------------------------- */

static kiln_status current_recipe(kiln_recipe **out_recipe, kiln_diag *diag)
{
    kiln_status status = kiln_recipe_create(KN_STAGE_AT(kiln_dictionary_in_use), out_recipe, diag);
    if (status == KILN_OK) {
        status = kiln_recipe_set_target(*out_recipe, KN_WIRE_TARGET, diag);
    }
    if (status != KILN_OK) {
        kiln_recipe_destroy(*out_recipe);
        *out_recipe = NULL;
    }
    return status;
}

static const kn_dictionary *look_for_current(kn_remote *remote)
{
    kiln_recipe *recipe = NULL;
    kiln_key key;
    if (current_recipe(&recipe, NULL) != KILN_OK) {
        return NULL;
    }
    key = kiln_recipe_key(recipe);
    kiln_recipe_destroy(recipe);
    kiln_blob *pointer = get_plain(remote, &key);
    const bool good = pointer != NULL && kiln_blob_size(pointer) == sizeof key;
    if (good) {
        memcpy(&key, kiln_blob_data(pointer), sizeof key);
    }
    kiln_blob_release(pointer);
    const kn_dictionary *found = good ? kn_remote_dictionary(remote, &key) : NULL;
    return found != NULL && kn_dictionaries_ready(remote->dictionaries, found) ? found : NULL;
}

const kn_dictionary *kn_remote_current(kn_remote *remote)
{
    if (!remote->asked_current && remote->dictionaries != NULL && remote->url.reads) {
        remote->asked_current = true;
        remote->current = look_for_current(remote);
    }
    return remote->current;
}

/* --- publishing ------------------------------------------------------------------------------- */

static kiln_status give_dictionary(kn_remote *remote, const kiln_recipe *recipe, kiln_blob *blob,
                                   bool replace, kiln_diag *diag)
{
    char why[KILN_REMOTE_WHY] = "";
    void *data = NULL;
    size_t size = 0;
    const kiln_key key = kiln_recipe_key(recipe);
    const kn_tier_put what = {
        .key = &key, .target = KN_WIRE_TARGET, .recipe = kn_recipe_span(recipe), .blob = blob};
    kiln_status status = kn_trust_seal(remote->trust, &what, NULL, &data, &size, diag);
    if (status != KILN_OK) {
        return status;
    }
    status = kn_remote_give(remote, &key, data, size, replace, why);
    free(data);
    return status == KILN_OK ? KILN_OK
                             : kiln_diag_set(diag, status, NULL, remote->url.shown, "%s",
                                             why[0] != '\0' ? why : kiln_status_text(status));
}

kiln_status kn_remote_publish(kn_remote *remote, kiln_blob *content, kiln_diag *diag)
{
    kiln_recipe *recipe = NULL, *pointer = NULL;
    kiln_blob *name = NULL;
    kiln_status status =
        kn_dictionary_recipe(kiln_blob_data(content), kiln_blob_size(content), &recipe, diag);
    if (status != KILN_OK) {
        return status;
    }
    const kiln_key key = kiln_recipe_key(recipe);
    status = current_recipe(&pointer, diag);
    if (status == KILN_OK) {
        status = kiln_blob_create(&key, sizeof key, NULL, 0, &name, diag);
    }
    /* The dictionary first: nobody is to be pointed to nothing. */
    if (status == KILN_OK) {
        status = give_dictionary(remote, recipe, content, true, diag);
    }
    if (status == KILN_OK) {
        status = give_dictionary(remote, pointer, name, true, diag);
    }
    const kn_dictionary *kept =
        status == KILN_OK ? kn_dictionaries_keep(remote->dictionaries, &key, content) : NULL;
    if (kept != NULL && kn_dictionaries_ready(remote->dictionaries, kept)) {
        remote->asked_current = true;
        remote->current = kept;
    }
    kiln_blob_release(name);
    kiln_recipe_destroy(pointer);
    kiln_recipe_destroy(recipe);
    return status;
}
