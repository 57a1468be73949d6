/* Programs: a shader module, its layouts, a VkPipelineCache, and one pipeline for each entry and
 * work-group size. A work-group size that the shader leaves to specialisation constants is set at
 * the first launch that needs it, which is why the cache is captured again after such a launch. */
#include <stdlib.h>
#include <string.h>

#include "apis/vulkan/backend/instance.h"
#include "base/diag.h"
#include "base/span.h"
#include "base/stages.h"
#include "base/strbuf.h"
#include "base/text.h"

static kiln_status create_layouts(kn_vk_program *program, kiln_diag *diag)
{
    const kn_vk_device *device = program->device;
    const kn_spirv *module = &program->module;
    VkDescriptorSetLayoutBinding bindings[KN_SPIRV_MAX_BINDINGS];
    for (size_t i = 0; i < module->binding_count; i++) {
        bindings[i] = (VkDescriptorSetLayoutBinding){
            .binding = module->bindings[i].binding,
            .descriptorType = module->bindings[i].uniform ? VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER
                                                          : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
            .descriptorCount = 1,
            .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
        };
    }
    const VkDescriptorSetLayoutCreateInfo set_info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = (uint32_t)module->binding_count,
        .pBindings = bindings,
    };
    VkResult result = device->fn.vkCreateDescriptorSetLayout(device->handle, &set_info, NULL,
                                                             &program->set_layout);
    if (result != VK_SUCCESS) {
        return kn_vk_fail(result, "vkCreateDescriptorSetLayout", diag);
    }
    const VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, module->push_size};
    const VkPipelineLayoutCreateInfo layout_info = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
        .setLayoutCount = 1,
        .pSetLayouts = &program->set_layout,
        .pushConstantRangeCount = module->push_size > 0 ? 1 : 0,
        .pPushConstantRanges = &range,
    };
    result =
        device->fn.vkCreatePipelineLayout(device->handle, &layout_info, NULL, &program->layout);
    return result == VK_SUCCESS ? KILN_OK : kn_vk_fail(result, "vkCreatePipelineLayout", diag);
}

static kiln_status check_limits(const kn_vk_program *program, const char *name, kiln_diag *diag)
{
    const VkPhysicalDeviceLimits *limits = &program->device->physical->properties.limits;
    if (program->module.push_size > limits->maxPushConstantsSize) {
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, "put large values in a buffer", name,
                             "it takes %u bytes of push constants; this device has %u",
                             program->module.push_size, limits->maxPushConstantsSize);
    }
    return KILN_OK;
}

void kn_vk_program_unload(void *opaque, void *handle)
{
    kn_vk_device *device = (kn_vk_device *)opaque;
    kn_vk_program *program = (kn_vk_program *)handle;
    if (program == NULL) {
        return;
    }
    kn_mutex_lock(&device->queue_lock);
    (void)device->fn.vkDeviceWaitIdle(device->handle);
    kn_mutex_unlock(&device->queue_lock);
    for (size_t i = 0; i < program->pipeline_count; i++) {
        device->fn.vkDestroyPipeline(device->handle, program->pipelines[i]->handle, NULL);
        free(program->pipelines[i]);
    }
    device->fn.vkDestroyPipelineCache(device->handle, program->cache, NULL);
    device->fn.vkDestroyShaderModule(device->handle, program->shader, NULL);
    device->fn.vkDestroyPipelineLayout(device->handle, program->layout, NULL);
    device->fn.vkDestroyDescriptorSetLayout(device->handle, program->set_layout, NULL);
    kn_mutex_deinit(&program->lock);
    free(program);
}

/* --- pipelines -------------------------------------------------------------------------------- */

/* Whether a dimension of the work-group is the constant of one before it (a square group). */
static bool shares_constant(const kn_spirv_entry *entry, uint32_t dimension)
{
    for (uint32_t i = 0; i < dimension; i++) {
        if (entry->specialised[i] && entry->specialised[dimension] &&
            entry->spec_id[i] == entry->spec_id[dimension]) {
            return true;
        }
    }
    return false;
}

static kiln_status create_pipeline(kn_vk_program *program, const kn_spirv_entry *entry,
                                   const uint32_t local[3], const kn_vk_pipeline **out_pipeline,
                                   kiln_diag *diag)
{
    const kn_vk_device *device = program->device;
    VkSpecializationMapEntry map[3];
    uint32_t count = 0;
    for (uint32_t i = 0; i < 3; i++) {
        if (entry->specialised[i] && !shares_constant(entry, i)) {
            map[count++] = (VkSpecializationMapEntry){
                entry->spec_id[i], i * (uint32_t)sizeof(uint32_t), sizeof(uint32_t)};
        }
    }
    const VkSpecializationInfo specialization = {count, map, 3 * sizeof(uint32_t), local};
    const VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage =
            {
                .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                .module = program->shader,
                .pName = entry->name,
                .pSpecializationInfo = count > 0 ? &specialization : NULL,
            },
        .layout = program->layout,
    };
    kn_vk_pipeline *pipeline = (kn_vk_pipeline *)calloc(1, sizeof(*pipeline));
    if (pipeline == NULL || program->pipeline_count == KN_VK_MAX_PIPELINES) {
        free(pipeline);
        return kiln_diag_set(diag, KILN_E_NOMEM, NULL, entry->name,
                             "out of memory, or more than %d work-group sizes",
                             KN_VK_MAX_PIPELINES);
    }
    VkResult result = device->fn.vkCreateComputePipelines(device->handle, program->cache, 1, &info,
                                                          NULL, &pipeline->handle);
    if (result != VK_SUCCESS) {
        free(pipeline);
        return kn_vk_fail(result, "vkCreateComputePipelines", diag);
    }
    pipeline->entry = entry;
    memcpy(pipeline->local, local, sizeof(pipeline->local));
    program->pipelines[program->pipeline_count++] = pipeline;
    *out_pipeline = pipeline;
    return KILN_OK;
}

static const kn_spirv_entry *find_entry(const kn_spirv *module, const char *name)
{
    for (size_t i = 0; i < module->entry_count; i++) {
        if (strcmp(module->entries[i].name, name) == 0) {
            return &module->entries[i];
        }
    }
    return NULL;
}

static kiln_status no_such_entry(const kn_spirv *module, const char *name, kiln_status code,
                                 kiln_diag *diag)
{
    char list[512] = {0};
    for (size_t i = 0; i < module->entry_count; i++) {
        const size_t used = strlen(list);
        kn_text_putf(list + used, sizeof(list) - used, "%s%s", i > 0 ? ", " : "",
                     module->entries[i].name);
    }
    return kiln_diag_set(diag, code, "use one of these", name, "the program's entries are: %s",
                         list);
}

/* Dimensions that are one constant have one size. */
static kiln_status check_shared(const kn_spirv_entry *entry, const uint32_t local[3],
                                kiln_diag *diag)
{
    for (uint32_t i = 0; i < 3; i++) {
        for (uint32_t j = i + 1; j < 3; j++) {
            if (entry->specialised[i] && entry->specialised[j] &&
                entry->spec_id[i] == entry->spec_id[j] && local[i] != local[j]) {
                return kiln_diag_set(diag, KILN_E_INVALID,
                                     "launch with the same size in both, or give each its own "
                                     "local_size_*_id",
                                     entry->name,
                                     "dimensions %u and %u of its work-group are one constant, and "
                                     "cannot be %u and %u",
                                     i, j, local[i], local[j]);
            }
        }
    }
    return KILN_OK;
}

kiln_status kn_vk_program_pipeline(kn_vk_program *program, const char *entry,
                                   const uint64_t local[3], const uint64_t global[3],
                                   const kn_vk_pipeline **out_pipeline, kiln_diag *diag)
{
    *out_pipeline = NULL;
    const kn_spirv_entry *found = find_entry(&program->module, entry);
    if (found == NULL) {
        return no_such_entry(&program->module, entry, KILN_E_INVALID, diag);
    }
    uint32_t size[3] = {1, 1, 1};
    kiln_status status =
        kn_glsl_choose_local(&program->device->physical->groups, found->specialised, found->local,
                             local, global, found->name, size, diag);
    if (status == KILN_OK) {
        status = check_shared(found, size, diag);
    }
    if (status != KILN_OK) {
        return status;
    }
    kn_mutex_lock(&program->lock);
    for (size_t i = 0; i < program->pipeline_count && *out_pipeline == NULL; i++) {
        if (program->pipelines[i]->entry == found &&
            memcmp(program->pipelines[i]->local, size, sizeof(size)) == 0) {
            *out_pipeline = program->pipelines[i];
        }
    }
    if (*out_pipeline == NULL) {
        status = create_pipeline(program, found, size, out_pipeline, diag);
        program->grew = program->grew || status == KILN_OK;
    }
    kn_mutex_unlock(&program->lock);
    return status;
}

/* --- the backend's operations ----------------------------------------------------------------- */

static kiln_status create_fixed_pipelines(kn_vk_program *program, kiln_diag *diag)
{
    static const uint64_t any[3] = {0, 0, 0};
    static const uint64_t one[3] = {1, 1, 1};
    const kn_spirv *module = &program->module;
    kiln_status status = KILN_OK;
    for (size_t i = 0; i < module->entry_count && status == KILN_OK; i++) {
        const kn_spirv_entry *entry = &module->entries[i];
        const kn_vk_pipeline *pipeline = NULL;
        if (!entry->specialised[0] && !entry->specialised[1] && !entry->specialised[2]) {
            status = kn_vk_program_pipeline(program, entry->name, any, one, &pipeline, diag);
        }
    }
    program->grew = false;
    return status;
}

static kiln_status create_shader(kn_vk_program *program, const void *spirv, size_t size,
                                 kiln_diag *diag)
{
    const kn_vk_device *device = program->device;
    const VkShaderModuleCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
        .codeSize = size,
        .pCode = (const uint32_t *)spirv, /* core keeps artifacts aligned as malloc does */
    };
    VkResult result =
        device->fn.vkCreateShaderModule(device->handle, &info, NULL, &program->shader);
    return result == VK_SUCCESS ? KILN_OK : kn_vk_fail(result, "vkCreateShaderModule", diag);
}

/* Makes the pipelines whose size is fixed, too; those left to specialisation wait for a launch. */
static kiln_status create_program(kn_vk_device *device, kn_span spirv, kn_span cache,
                                  const char *name, kn_vk_program **out_program, kiln_diag *diag)
{
    kn_vk_program *program = (kn_vk_program *)calloc(1, sizeof(*program));
    *out_program = NULL;
    if (program == NULL) {
        return kn_no_memory(diag, name);
    }
    program->device = device;
    kn_mutex_init(&program->lock);
    kiln_status status = kn_vk_cache_create(device->fn.vkCreatePipelineCache, device->handle,
                                            &device->physical->properties, cache.data, cache.length,
                                            &program->cache, diag);
    if (status == KILN_OK) {
        status = kn_spirv_reflect(spirv.data, spirv.length, name, &program->module, diag);
    }
    if (status == KILN_OK) {
        status = check_limits(program, name, diag);
    }
    if (status == KILN_OK) {
        status = create_layouts(program, diag);
    }
    if (status == KILN_OK) {
        status = create_shader(program, spirv.data, spirv.length, diag);
    }
    if (status == KILN_OK) {
        status = create_fixed_pipelines(program, diag);
    }
    if (status != KILN_OK) {
        kn_vk_program_unload(device, program);
        return status;
    }
    *out_program = program;
    return KILN_OK;
}

kiln_status kn_vk_program_capture(void *opaque, void *handle, kiln_artifact *artifact,
                                  kiln_diag *diag)
{
    kn_vk_device *device = (kn_vk_device *)opaque;
    kn_vk_program *program = (kn_vk_program *)handle;
    void *data = NULL;
    size_t size = 0;
    kn_mutex_lock(&program->lock);
    program->grew = false;
    kn_mutex_unlock(&program->lock);
    kiln_status status =
        kn_vk_cache_read(device->fn.vkGetPipelineCacheData, device->handle,
                         &device->physical->properties, program->cache, &data, &size, diag);
    if (status == KILN_OK &&
        device->vk->host->artifact_set(artifact, KILN_LANG_NONE, data, size) != KILN_OK) {
        status = kn_no_memory(diag, "pipeline cache");
    }
    free(data);
    return status;
}

static kiln_status keep_names(const kn_vk *vk, const kn_spirv *module, kiln_artifact *artifact,
                              kiln_diag *diag)
{
    kn_strbuf names;
    kn_strbuf_init(&names, 0);
    for (size_t i = 0; i < module->entry_count; i++) {
        kn_strbuf_printf(&names, "%s\n", module->entries[i].name);
    }
    const bool kept = kn_strbuf_ok(&names) &&
                      vk->host->artifact_set_fact(artifact, KILN_FACT_ENTRIES,
                                                  kn_strbuf_text(&names), names.length) == KILN_OK;
    kn_strbuf_deinit(&names);
    return kept ? KILN_OK : kn_no_memory(diag, "keeping a pipeline");
}

/* A pipeline whose cache cannot be read runs all the same; it is made again in every process. */
static kiln_status capture_new(kn_vk_device *device, kn_vk_program *program, bool runs,
                               kiln_artifact *artifact, kiln_diag *diag)
{
    kiln_diag reason = KILN_DIAG_INIT;
    kiln_status status = kn_vk_program_capture(device, program, artifact, &reason);
    if (status != KILN_OK && runs) {
        char line[512];
        kn_text_putf(line, sizeof(line), "vulkan: a pipeline is not cached: %s", reason.why);
        device->vk->host->log(KILN_LOG_WARN, line);
        status = KILN_OK;
    } else if (status != KILN_OK) {
        (void)kiln_diag_set(diag, status, reason.fix, "pipeline cache", "%s", reason.why);
    }
    kiln_diag_clear(&reason);
    return status;
}

kiln_status kn_vk_compile(void *instance, const kiln_compile_request *request,
                          kiln_artifact *artifact, void **out_live, kiln_diag *diag)
{
    kn_vk *vk = (kn_vk *)instance;
    if (strcmp(request->stage->name, kn_stage_vulkan_spirv) == 0) {
        return kn_vk_compile_glsl(vk, request, artifact, diag);
    }
    kn_vk_device *device = (kn_vk_device *)request->device;
    const kiln_source *source = request->source;
    const char *name = source->name != NULL ? source->name : "SPIR-V";
    const kn_span spirv = request->input != NULL
                              ? kn_span_of(request->input->data, request->input->size)
                              : kn_span_of(source->text, source->length);
    if (device == NULL) {
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, "compile it where the device is", name,
                             "a pipeline needs a device");
    }
    kn_vk_program *program = NULL;
    kiln_status status = create_program(device, spirv, kn_span_of(NULL, 0), name, &program, diag);
    if (status == KILN_OK) {
        status = capture_new(device, program, request->want_live, artifact, diag);
    }
    if (status == KILN_OK && artifact->size > 0) {
        status = keep_names(vk, &program->module, artifact, diag);
    }
    if (status == KILN_OK && request->want_live && out_live != NULL) {
        *out_live = program;
        return KILN_OK;
    }
    kn_vk_program_unload(device, program);
    return status;
}

kiln_status kn_vk_program_load(void *opaque, const kiln_load_request *request, void **out_program,
                               kiln_diag *diag)
{
    kn_vk_device *device = (kn_vk_device *)opaque;
    const kiln_source *source = request->source;
    const char *name = source != NULL && source->name != NULL ? source->name : "program";
    const kiln_artifact *cache = request->artifacts[request->artifact_count - 1];
    kn_span spirv =
        kn_span_of(source != NULL ? source->text : NULL, source != NULL ? source->length : 0);
    if (request->artifact_count > 1) {
        const kiln_artifact *made = request->artifacts[request->artifact_count - 2];
        spirv = kn_span_of(made->data, made->size);
    }
    return create_program(device, spirv, kn_span_of(cache->data, cache->size), name,
                          (kn_vk_program **)out_program, diag);
}

bool kn_vk_program_grew(void *device, void *handle)
{
    kn_vk_program *program = (kn_vk_program *)handle;
    (void)device;
    kn_mutex_lock(&program->lock);
    const bool grew = program->grew;
    kn_mutex_unlock(&program->lock);
    return grew;
}

const char *kn_vk_program_entry(void *device, void *handle, size_t index)
{
    const kn_vk_program *program = (const kn_vk_program *)handle;
    (void)device;
    return index < program->module.entry_count ? program->module.entries[index].name : NULL;
}

kiln_status kn_vk_program_params(void *device, void *handle, const char *entry,
                                 const kiln_param **out_params, size_t *out_count, kiln_diag *diag)
{
    const kn_vk_program *program = (const kn_vk_program *)handle;
    (void)device;
    *out_params = NULL;
    *out_count = 0;
    if (find_entry(&program->module, entry) == NULL) {
        return no_such_entry(&program->module, entry, KILN_MISS, diag);
    }
    /* A shader's buffers and values are two lists, each in an order of its own: how they interleave
     * is up to the launch, which checks count and sizes itself. */
    return KILN_E_UNSUPPORTED;
}
