/* See jitlink_key.h. */
#include "apis/cuda/shim/jitlink_key.h"

#include <string.h>

#include "base/stages.h"
#include "base/text.h"
#include "interpose/tool.h"
#include "key/recipe.h"

bool kn_jitlink_identify(kiln_cache *cache, const kn_jitlink_real *library, char *out, size_t size)
{
    return kn_tool_identify(cache, library->path, out, size);
}

/* --- recipes ---------------------------------------------------------------------------------- */

static const char *target_of(const kn_jitlink_link *link, char *out, size_t size)
{
    static const char prefix[] = "-arch=";
    kn_text_put(out, size, "cuda-default");
    for (uint32_t i = 0; i < link->option_count; i++) {
        const char *value = link->options[i] + strlen(prefix);
        if (kn_text_starts(link->options[i], prefix) && strlen(value) < 32 && value[0] != '\0' &&
            strspn(value, "abcdefghijklmnopqrstuvwxyz_0123456789") == strlen(value)) {
            kn_text_putf(out, size, "cuda-%s", value);
        }
    }
    return out;
}

static kiln_status begin_recipe(const char *stage, uint32_t revision, const char *target,
                                kiln_recipe **out_recipe)
{
    kiln_status status = kiln_recipe_create(stage, revision, out_recipe, NULL);
    if (status == KILN_OK) {
        kiln_recipe_set_target(*out_recipe, target);
    }
    return status;
}

kiln_status kn_jitlink_key_create(const kn_jitlink_link *link, const char *identity,
                                  kiln_recipe **out_recipe)
{
    char target[64];
    kiln_status status = begin_recipe(KN_STAGE_AT(nvjitlink_create),
                                      target_of(link, target, sizeof(target)), out_recipe);
    if (status != KILN_OK) {
        return status;
    }
    kn_recipe_add_string(*out_recipe, "nvjitlink", identity);
    kiln_recipe_add_u64(*out_recipe, "release", link->release);
    for (uint32_t i = 0; i < link->option_count; i++) {
        kn_recipe_add_string(*out_recipe, "option", link->options[i]);
    }
    return kn_recipe_end(out_recipe, NULL);
}

static kiln_status begin_step(const kn_jitlink_link *link, const char *stage, uint32_t revision,
                              unsigned release, kiln_recipe **out_recipe)
{
    char target[64];
    kiln_status status =
        begin_recipe(stage, revision, target_of(link, target, sizeof(target)), out_recipe);
    if (status == KILN_OK) {
        kiln_recipe_add_bytes(*out_recipe, "before", &link->step, sizeof(link->step));
        kiln_recipe_add_u64(*out_recipe, "release", release);
    }
    return status;
}

kiln_status kn_jitlink_key_add(const kn_jitlink_link *link, kiln_recipe **out_recipe)
{
    const kn_jitlink_input *input = &link->inputs[link->input_count - 1];
    kiln_status status = begin_step(link, KN_STAGE_AT(nvjitlink_add), input->release, out_recipe);
    if (status != KILN_OK) {
        return status;
    }
    kiln_recipe_add_u64(*out_recipe, "type", (uint64_t)input->type);
    if (input->name != NULL) {
        kn_recipe_add_string(*out_recipe, "name", input->name);
    }
    kiln_recipe_add_bytes(*out_recipe, "input", input->data, input->size);
    return kn_recipe_end(out_recipe, NULL);
}

kiln_status kn_jitlink_key_complete(const kn_jitlink_link *link, unsigned release,
                                    kiln_recipe **out_recipe)
{
    kiln_status status = begin_step(link, KN_STAGE_AT(nvjitlink_complete), release, out_recipe);
    return status == KILN_OK ? kn_recipe_end(out_recipe, NULL) : status;
}

kiln_status kn_jitlink_key_version(const char *identity, kiln_recipe **out_recipe)
{
    kiln_status status = begin_recipe(KN_STAGE_AT(kiln_nvjitlink), "portable", out_recipe);
    if (status != KILN_OK) {
        return status;
    }
    kn_recipe_add_string(*out_recipe, "nvjitlink", identity);
    return kn_recipe_end(out_recipe, NULL);
}
