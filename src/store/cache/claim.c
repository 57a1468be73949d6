/* Claims: a compile that goes on between two calls. */
#include <stdlib.h>

#include <kiln/unstable/claim.h>

#include "base/diag.h"
#include "sized/sized.h"
#include "store/cache/get_or_compile.h"

struct kiln_claim {
    kn_fetch fetch;
    kiln_recipe *recipe;
};

static void free_claim(kiln_claim *claim)
{
    kiln_recipe_destroy(claim->recipe);
    free(claim);
}

static kiln_status make_claim(const kiln_recipe *recipe, kiln_claim **out_claim, kiln_diag *diag)
{
    *out_claim = NULL;
    kiln_claim *claim = calloc(1, sizeof *claim);
    if (claim == NULL) {
        return kn_no_memory(diag, "claiming an entry");
    }
    const kiln_status status = kiln_recipe_copy(recipe, &claim->recipe, diag);
    if (status != KILN_OK) {
        free(claim);
        return status;
    }
    *out_claim = claim;
    return KILN_OK;
}

/* KILN_OK: the fetch has found it. KILN_MISS: it is to be compiled. */
static kiln_status look_up_or_reserve(kn_fetch *fetch, uint32_t wait_ms, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    if (kn_fetch_look_up(fetch) || !kn_fetch_reserve(fetch, wait_ms, &status, diag)) {
        return status;
    }
    kn_fetch_start(fetch);
    return KILN_MISS;
}

kiln_status kiln_cache_claim(kiln_cache *cache, const kiln_recipe *recipe,
                             const kiln_claim_options *options, kiln_blob **out_blob,
                             kiln_claim **out_claim, kiln_origin *out_origin, kiln_diag *diag)
{
    kiln_claim_options defaults = {.struct_size = sizeof defaults};
    kiln_claim_options room;
    kiln_claim *claim = NULL;
    *out_blob = NULL;
    *out_claim = NULL;
    options = kn_sized_view(KN_SIZED(kiln_claim_options), options != NULL ? options : &defaults,
                            &room, diag);
    if (options == NULL) {
        return KILN_E_INVALID;
    }
    kiln_status status = make_claim(recipe, &claim, diag);
    if (status != KILN_OK || claim == NULL) {
        return status;
    }
    kn_fetch *fetch = &claim->fetch;
    status = kn_fetch_begin(fetch, cache, claim->recipe, diag);
    if (status == KILN_OK) {
        fetch->interrupted = options->interrupted;
        fetch->user = options->user;
        status = look_up_or_reserve(
            fetch, options->wait_ms != 0 ? options->wait_ms : cache->options.wait_ms, diag);
    }
    if (out_origin != NULL) {
        *out_origin = fetch->origin;
    }
    if (status == KILN_MISS) {
        *out_claim = claim;
    } else {
        *out_blob = fetch->blob;
        free_claim(claim);
    }
    return status;
}

kiln_status kiln_claim_fulfil(kiln_claim *claim, kiln_blob *blob, kiln_diag *diag)
{
    if (claim == NULL) {
        return KILN_OK;
    }
    if (blob == NULL || kiln_blob_size(blob) == 0) {
        kiln_claim_abandon(claim);
        return kiln_diag_set(diag, KILN_E_INVALID, "abandon the claim where a compile fails",
                             "fulfilling a claim", "the blob is empty");
    }
    kn_fetch *fetch = &claim->fetch;
    fetch->blob = kiln_blob_retain(blob);
    const kiln_status status = kn_fetch_publish(fetch, KILN_OK, diag);
    kiln_blob_release(fetch->blob);
    free_claim(claim);
    return status;
}

void kiln_claim_abandon(kiln_claim *claim)
{
    if (claim == NULL) {
        return;
    }
    kn_fetch_abandon(&claim->fetch);
    free_claim(claim);
}
