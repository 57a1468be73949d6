/* Targets and stages: GLSL -> SPIR-V is portable; SPIR-V -> pipeline cache belongs to the driver.
 */
#include <string.h>

#include "apis/vulkan/backend/instance.h"
#include "base/stages.h"
#include "base/text.h"

kiln_status kn_vk_target_of_device(void *instance, uint32_t device_index, kiln_target *out_target,
                                   kiln_diag *diag)
{
    kiln_device_info info;
    kiln_status status = kn_vk_device_info(instance, device_index, &info, diag);
    if (status != KILN_OK) {
        return status;
    }
    kn_text_putf(out_target->name, sizeof(out_target->name), "vulkan-%s", info.target);
    out_target->has_device = true;
    out_target->device_index = device_index;
    return KILN_OK;
}

kiln_status kn_vk_target_parse(void *instance, const char *name, kiln_target *out_target,
                               kiln_diag *diag)
{
    (void)instance;
    if (strcmp(name, "spirv") != 0) {
        return kiln_diag_set(diag, KILN_E_INVALID, "did you mean vulkan:spirv?", "vulkan target",
                             "'%.40s' is not a target; without a device only SPIR-V can be made",
                             name);
    }
    kn_text_put(out_target->name, sizeof(out_target->name), "vulkan-spirv");
    return KILN_OK;
}

void kn_vk_target_destroy(void *instance, kiln_target *target)
{
    (void)instance;
    target->handle = NULL;
}

const kiln_stage *kn_vk_stages(void *instance, const kiln_target *target, kiln_language language,
                               size_t *out_count)
{
    static const kiln_stage from_glsl[] = {
        {KN_STAGE_AT(vulkan_spirv), KILN_LANG_SPIRV, true, true, false},
        {KN_STAGE_AT(vulkan_pipeline), KILN_LANG_NONE, false, false, true},
    };
    static const kiln_stage from_spirv[] = {
        {KN_STAGE_AT(vulkan_pipeline), KILN_LANG_NONE, true, false, true},
    };
    (void)instance;
    *out_count = 0;
    if (language == KILN_LANG_GLSL) {
        *out_count = target->has_device ? 2 : 1;
        return from_glsl;
    }
    if (language == KILN_LANG_SPIRV && target->has_device) {
        *out_count = 1;
        return from_spirv;
    }
    return NULL;
}
