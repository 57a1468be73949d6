/* What the two stages depend on: shaderc by build id; vendor, device, driver and its cache
 * identifiers. */
#include <string.h>

#include "apis/vulkan/backend/instance.h"
#include "base/stages.h"
#include "base/text.h"

static void text_u32(const kiln_identity *identity, const char *name, uint32_t value)
{
    char text[16];
    kn_text_putf(text, sizeof(text), "%08x", value);
    identity->text(identity->sink, name, text);
}

static void text_uuid(const kiln_identity *identity, const char *name, const uint8_t *uuid)
{
    char text[2 * VK_UUID_SIZE + 1];
    kn_hex_encode(uuid, VK_UUID_SIZE, text);
    identity->text(identity->sink, name, text);
}

void kn_vk_identify_driver(const kn_vk_physical *physical, const kiln_identity *identity)
{
    static const char *const variables[] = {
        "MESA_GLSL",
        "MESA_DEBUG",
        "LP_NATIVE_VECTOR_WIDTH",
        "LP_DEBUG",
        "GALLIVM_DEBUG",
        "GALLIVM_PERF",
        "RADV_DEBUG",
        "RADV_PERFTEST",
        "ACO_DEBUG",
        "AMD_DEBUG",
        "INTEL_DEBUG",
        "ANV_ENABLE_PIPELINE_CACHE",
        "NIR_DEBUG",
        "NVK_DEBUG",
        "TU_DEBUG",
        "BRW_DEBUG",
        "__GL_ShaderPortabilityWarnings",
    };
    text_u32(identity, "vendor", physical->properties.vendorID);
    text_u32(identity, "device", physical->properties.deviceID);
    text_u32(identity, "driver", physical->properties.driverVersion);
    text_u32(identity, "api", physical->properties.apiVersion);
    identity->text(identity->sink, "name", physical->properties.deviceName);
    identity->text(identity->sink, KILN_IDENTITY_CODE,
                   kn_vk_class_of(physical->properties.deviceType) != KILN_DEVICE_SOFTWARE
                       ? KILN_IDENTITY_GPU
                       : "processor");
    identity->text(identity->sink, "driver-name", physical->driver.driverName);
    identity->text(identity->sink, "driver-info", physical->driver.driverInfo);
    text_uuid(identity, "pipeline-cache-uuid", physical->properties.pipelineCacheUUID);
    text_uuid(identity, "driver-uuid", physical->id.driverUUID);
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        identity->env(identity->sink, variables[i]);
    }
}

kiln_status kn_vk_identify(void *instance, const kiln_stage *stage, const kiln_target *target,
                           const kiln_identity *identity, kiln_diag *diag)
{
    const kn_vk *vk = (const kn_vk *)instance;
    if (strcmp(stage->name, kn_stage_vulkan_spirv) == 0) {
        identity->text(identity->sink, "shaderc", vk->shaderc_id);
        identity->text(identity->sink, "environment", "vulkan1.1");
        return KILN_OK;
    }
    if (!target->has_device || target->device_index >= vk->device_count) {
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, NULL, "vulkan", "a pipeline needs a device");
    }
    kn_vk_identify_driver(&vk->physical[target->device_index], identity);
    return KILN_OK;
}

/* SPIR-V with debug information holds the names of the source and of each header, as shaderc got
 * them. */
uint32_t kn_vk_option_effects(void *instance, const kiln_source *source)
{
    (void)instance;
    for (size_t i = 0; i < source->option_count; i++) {
        if (strcmp(source->options[i], "-g") == 0) {
            return KILN_OPTION_NAMES_GIVEN;
        }
    }
    return 0;
}
