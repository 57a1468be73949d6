/* See nvrtc_facts.h. */
#include "apis/cuda/shim/nvrtc_facts.h"

#include <string.h>

#include "base/checked.h"
#include "base/stages.h"
#include "interpose/session.h"
#include "key/recipe.h"
#include "store/cache/cache.h"
#include "store/format/blob.h"

static nvrtcResult ask_facts(const kn_nvrtc_real *library, kn_nvrtc_facts *out)
{
    const kn_nvrtc_table *real = library->open();
    if (real == NULL || real->nvrtcGetNumSupportedArchs == NULL ||
        real->nvrtcGetSupportedArchs == NULL) {
        return KN_RTC_INTERNAL_ERROR;
    }
    memset(out, 0, sizeof(*out));
    nvrtcResult code = real->nvrtcVersion(&out->major, &out->minor);
    if (code == 0) {
        code = real->nvrtcGetNumSupportedArchs(&out->count);
    }
    if (code == 0 && (out->count < 0 || out->count > KN_NVRTC_ARCHS_MAX)) {
        code = KN_RTC_INTERNAL_ERROR;
    }
    return code == 0 ? real->nvrtcGetSupportedArchs(out->archs) : code;
}

static kiln_status make_facts_recipe(const kn_rtc_identity *identity, kiln_recipe **out_recipe)
{
    kiln_status status = kiln_recipe_create(KN_STAGE_AT(nvrtc_facts), out_recipe, NULL);
    if (status != KILN_OK) {
        return status;
    }
    kiln_recipe_set_target(*out_recipe, "portable");
    kn_recipe_add_string(*out_recipe, "nvrtc", identity->fields[0].text);
    return kn_recipe_end(out_recipe, NULL);
}

static bool read_facts(const kiln_blob *blob, kn_nvrtc_facts *out)
{
    const size_t size = kiln_blob_size(blob);
    const unsigned char *bytes = (const unsigned char *)kiln_blob_data(blob);
    memset(out, 0, sizeof(*out));
    if (size < 12 || size % 4 != 0 || (size - 12) / 4 > KN_NVRTC_ARCHS_MAX) {
        return false;
    }
    out->major = (int)kn_get_u32(bytes);
    out->minor = (int)kn_get_u32(bytes + 4);
    out->count = (int)kn_get_u32(bytes + 8);
    for (size_t i = 0; i < (size - 12) / 4; i++) {
        out->archs[i] = (int)kn_get_u32(bytes + 12 + 4 * i);
    }
    return out->count >= 0 && (size_t)out->count == (size - 12) / 4;
}

static void keep_facts(kiln_cache *cache, const kiln_recipe *recipe, const kn_nvrtc_facts *facts)
{
    unsigned char bytes[12 + 4 * KN_NVRTC_ARCHS_MAX];
    kiln_blob *blob = NULL;
    kn_put_u32(bytes, (uint32_t)facts->major);
    kn_put_u32(bytes + 4, (uint32_t)facts->minor);
    kn_put_u32(bytes + 8, (uint32_t)facts->count);
    for (int i = 0; i < facts->count; i++) {
        kn_put_u32(bytes + 12 + 4 * i, (uint32_t)facts->archs[i]);
    }
    if (kiln_blob_create(bytes, 12 + 4 * (size_t)facts->count, NULL, 0, &blob, NULL) == KILN_OK) {
        kn_ignore(kiln_cache_put(cache, recipe, blob, 0, NULL)); /* the next process asks again */
        kiln_blob_release(blob);
    }
}

nvrtcResult kn_nvrtc_facts_get(kn_rtc_library *library, const kn_nvrtc_real *real,
                               kn_nvrtc_facts *out_facts)
{
    kiln_cache *cache = kn_session_cache();
    kn_rtc_identity identity;
    kiln_recipe *recipe = NULL;
    kiln_blob *blob = NULL;
    if (cache == NULL || kn_rtc_library_identify(library, &identity, NULL) != KILN_OK ||
        make_facts_recipe(&identity, &recipe) != KILN_OK) {
        return ask_facts(real, out_facts);
    }
    const kiln_key key = kiln_recipe_key(recipe);
    bool found = kn_cache_get_note(cache, &key, "portable", &blob) == KILN_OK;
    if (found) {
        found = read_facts(blob, out_facts);
        kiln_blob_release(blob);
    }
    const nvrtcResult code = found ? 0 : ask_facts(real, out_facts);
    if (!found && code == 0 && library->kind->identity_holds(library, &identity)) {
        keep_facts(cache, recipe, out_facts);
    }
    kiln_recipe_destroy(recipe);
    return code;
}
