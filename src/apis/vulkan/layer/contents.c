/* See contents.h. What hangs in a chain of pNext and is not known here is named by its type alone:
 * the driver sees it whole, and looks in a VkPipelineCache for what it is asked for. */
#include "apis/vulkan/layer/contents.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/strbuf.h"
#include "key/digest.h"
#include "key/recipe.h"

#define SPIRV_MAGIC 0x07230203u
enum { SPIRV_HEADER = 5, OP_ENTRY_POINT = 15, OP_FUNCTION = 54, MODEL_COMPUTE = 5 };

/* VkPipelineCreateFlags2CreateInfoKHR, which is younger than the headers. */
enum { TYPE_FLAGS2 = 1000470005 };
typedef struct flags2_info {
    VkStructureType type;
    const void *next;
    uint64_t flags;
} flags2_info;

void kn_contents_init(kn_layer_contents *contents)
{
    kn_mutex_init(&contents->mutex);
    kn_map_init(&contents->digests);
}

void kn_contents_deinit(kn_layer_contents *contents)
{
    size_t cursor = 0;
    void *digest = NULL;
    while (kn_map_next(&contents->digests, &cursor, NULL, NULL, &digest)) {
        free(digest);
    }
    kn_map_deinit(&contents->digests);
    kn_mutex_deinit(&contents->mutex);
}

/* --- the table -------------------------------------------------------------------------------- */

typedef struct content_key {
    uint64_t kind, handle;
} content_key;

static void keep_digest(kn_layer_contents *contents, kn_content_kind kind, uint64_t handle,
                        const uint8_t digest[KN_DIGEST_SIZE])
{
    const content_key key = {kind, handle};
    void *old = NULL;
    uint8_t *copy = malloc(KN_DIGEST_SIZE);
    if (copy == NULL) {
        kn_contents_remove(contents, kind, handle); /* what an earlier object of the handle was */
        return;
    }
    memcpy(copy, digest, KN_DIGEST_SIZE);
    kn_mutex_lock(&contents->mutex);
    const bool kept = kn_map_put(&contents->digests, &key, sizeof(key), copy, &old);
    kn_mutex_unlock(&contents->mutex);
    if (!kept) {
        free(copy);
        kn_contents_remove(contents, kind, handle);
    }
    free(old);
}

void kn_contents_remove(kn_layer_contents *contents, kn_content_kind kind, uint64_t handle)
{
    const content_key key = {kind, handle};
    kn_mutex_lock(&contents->mutex);
    void *old = kn_map_remove(&contents->digests, &key, sizeof(key));
    kn_mutex_unlock(&contents->mutex);
    free(old);
}

/* Zeros and false where it is unknown. */
static bool find_digest(kn_layer_contents *contents, kn_content_kind kind, uint64_t handle,
                        uint8_t digest[KN_DIGEST_SIZE])
{
    const content_key key = {kind, handle};
    memset(digest, 0, KN_DIGEST_SIZE);
    kn_mutex_lock(&contents->mutex);
    const void *found = kn_map_find(&contents->digests, &key, sizeof(key));
    if (found != NULL) {
        memcpy(digest, found, KN_DIGEST_SIZE);
    }
    kn_mutex_unlock(&contents->mutex);
    return found != NULL;
}

/* --- describing ------------------------------------------------------------------------------- */

static void put_number(kn_strbuf *text, uint64_t number)
{
    unsigned char bytes[8];
    kn_put_u64(bytes, number);
    kn_strbuf_append(text, bytes, sizeof(bytes));
}

static void put_digest(kn_strbuf *text, kn_layer_contents *contents, kn_content_kind kind,
                       uint64_t handle)
{
    uint8_t digest[KN_DIGEST_SIZE];
    (void)find_digest(contents, kind, handle, digest);
    kn_strbuf_append(text, digest, sizeof(digest));
}

static void put_types(kn_strbuf *text, const void *chain)
{
    for (const VkBaseInStructure *at = chain; at != NULL; at = at->pNext) {
        put_number(text, at->sType);
    }
    put_number(text, 0);
}

/* What was described becomes what is known of the handle. Ends the text. */
static void keep_described(kn_layer_contents *contents, kn_content_kind kind, uint64_t handle,
                           kn_strbuf *text)
{
    uint8_t digest[KN_DIGEST_SIZE];
    if (kn_strbuf_ok(text) && kn_digest_of(kn_strbuf_text(text), text->length, digest)) {
        keep_digest(contents, kind, handle, digest);
    } else {
        kn_contents_remove(contents, kind, handle);
    }
    kn_strbuf_deinit(text);
}

/* --- objects ---------------------------------------------------------------------------------- */

/* Code of the graphics pipeline is not looked up by its content, and not digested. */
static bool has_compute_entry(const uint32_t *words, size_t count)
{
    if (count <= SPIRV_HEADER || words[0] != SPIRV_MAGIC) {
        return count > SPIRV_HEADER; /* of the other byte order, perhaps */
    }
    for (size_t at = SPIRV_HEADER; at < count;) {
        const uint32_t code = words[at] & 0xffffu, length = words[at] >> 16;
        if (length == 0 || code == OP_FUNCTION) {
            break;
        }
        if (code == OP_ENTRY_POINT && at + 1 < count && words[at + 1] == MODEL_COMPUTE) {
            return true;
        }
        at += length;
    }
    return false;
}

void kn_contents_add_module(kn_layer_contents *contents, VkShaderModule handle,
                            const VkShaderModuleCreateInfo *info)
{
    uint8_t digest[KN_DIGEST_SIZE];
    if (has_compute_entry(info->pCode, info->codeSize / sizeof(uint32_t)) &&
        kn_digest_of(info->pCode, info->codeSize, digest)) {
        keep_digest(contents, KN_CONTENT_MODULE, (uint64_t)handle, digest);
    } else {
        kn_contents_remove(contents, KN_CONTENT_MODULE, (uint64_t)handle);
    }
}

void kn_contents_add_sampler(kn_layer_contents *contents, VkSampler handle,
                             const VkSamplerCreateInfo *info)
{
    const float floats[] = {info->mipLodBias, info->maxAnisotropy, info->minLod, info->maxLod};
    const uint64_t numbers[] = {
        info->flags,         info->magFilter,    info->minFilter,    info->mipmapMode,
        info->addressModeU,  info->addressModeV, info->addressModeW, info->anisotropyEnable,
        info->compareEnable, info->compareOp,    info->borderColor,  info->unnormalizedCoordinates};
    kn_strbuf text;
    kn_strbuf_init(&text, 0);
    kn_strbuf_append(&text, numbers, sizeof(numbers));
    kn_strbuf_append(&text, floats, sizeof(floats));
    put_types(&text, info->pNext);
    keep_described(contents, KN_CONTENT_SAMPLER, (uint64_t)handle, &text);
}

static void put_binding(kn_strbuf *text, kn_layer_contents *contents,
                        const VkDescriptorSetLayoutBinding *binding)
{
    const bool samples = binding->descriptorType == VK_DESCRIPTOR_TYPE_SAMPLER ||
                         binding->descriptorType == VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER;
    const bool fixed = samples && binding->pImmutableSamplers != NULL;
    put_number(text, binding->binding);
    put_number(text, binding->descriptorType);
    put_number(text, binding->descriptorCount);
    put_number(text, binding->stageFlags);
    put_number(text, fixed);
    for (uint32_t i = 0; fixed && i < binding->descriptorCount; i++) {
        put_digest(text, contents, KN_CONTENT_SAMPLER, (uint64_t)binding->pImmutableSamplers[i]);
    }
}

void kn_contents_add_set_layout(kn_layer_contents *contents, VkDescriptorSetLayout handle,
                                const VkDescriptorSetLayoutCreateInfo *info)
{
    kn_strbuf text;
    kn_strbuf_init(&text, 0);
    put_number(&text, info->flags);
    put_number(&text, info->bindingCount);
    for (uint32_t i = 0; i < info->bindingCount; i++) {
        put_binding(&text, contents, &info->pBindings[i]);
    }
    put_types(&text, info->pNext);
    for (const VkBaseInStructure *at = info->pNext; at != NULL; at = at->pNext) {
        if (at->sType == VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_BINDING_FLAGS_CREATE_INFO) {
            const VkDescriptorSetLayoutBindingFlagsCreateInfo *flags = (const void *)at;
            for (uint32_t i = 0; flags->pBindingFlags != NULL && i < flags->bindingCount; i++) {
                put_number(&text, flags->pBindingFlags[i]);
            }
        }
    }
    keep_described(contents, KN_CONTENT_SET_LAYOUT, (uint64_t)handle, &text);
}

void kn_contents_add_layout(kn_layer_contents *contents, VkPipelineLayout handle,
                            const VkPipelineLayoutCreateInfo *info)
{
    kn_strbuf text;
    kn_strbuf_init(&text, 0);
    put_number(&text, info->flags);
    put_number(&text, info->setLayoutCount);
    for (uint32_t i = 0; i < info->setLayoutCount; i++) {
        put_digest(&text, contents, KN_CONTENT_SET_LAYOUT, (uint64_t)info->pSetLayouts[i]);
    }
    for (uint32_t i = 0; i < info->pushConstantRangeCount; i++) {
        put_number(&text, info->pPushConstantRanges[i].stageFlags);
        put_number(&text, info->pPushConstantRanges[i].offset);
        put_number(&text, info->pPushConstantRanges[i].size);
    }
    put_types(&text, info->pNext);
    keep_described(contents, KN_CONTENT_LAYOUT, (uint64_t)handle, &text);
}

/* --- pipelines -------------------------------------------------------------------------------- */

/* What a pipeline is made of, field by field. */
typedef struct description {
    kiln_recipe *recipe;
    bool unknown; /* something that no key can hold */
} description;

static void add_number(description *to, const char *name, uint64_t number)
{
    kiln_recipe_add_u64(to->recipe, name, number);
}

static void add_bytes(description *to, const char *name, const void *data, size_t size)
{
    kiln_recipe_add_bytes(to->recipe, name, data, size);
}

static void add_constants(description *to, const VkSpecializationInfo *constants)
{
    for (uint32_t i = 0; constants != NULL && i < constants->mapEntryCount; i++) {
        const VkSpecializationMapEntry *row = &constants->pMapEntries[i];
        if (row->offset > constants->dataSize || row->size > constants->dataSize - row->offset) {
            to->unknown = true; /* the driver may say what it thinks of it */
            return;
        }
        add_number(to, "constant", row->constantID);
        add_bytes(to, "value", (const char *)constants->pData + row->offset, row->size);
    }
}

static void add_stage_link(description *to, const VkBaseInStructure *link, bool *out_inlined)
{
    uint8_t digest[KN_DIGEST_SIZE];
    if (link->sType == VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO) {
        const VkShaderModuleCreateInfo *module = (const void *)link;
        *out_inlined = kn_digest_of(module->pCode, module->codeSize, digest);
        add_bytes(to, "code", digest, sizeof(digest));
    } else if (link->sType ==
               VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO) {
        const VkPipelineShaderStageRequiredSubgroupSizeCreateInfo *size = (const void *)link;
        add_number(to, "subgroup", size->requiredSubgroupSize);
    } else if (link->sType ==
               VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_MODULE_IDENTIFIER_CREATE_INFO_EXT) {
        to->unknown = true; /* it names code that is not here */
    } else {
        add_number(to, "stage-next", link->sType);
    }
}

static void add_stage(description *to, kn_layer_contents *contents,
                      const VkPipelineShaderStageCreateInfo *stage)
{
    uint8_t digest[KN_DIGEST_SIZE];
    bool inlined = false;
    for (const VkBaseInStructure *at = stage->pNext; at != NULL; at = at->pNext) {
        add_stage_link(to, at, &inlined);
    }
    if (stage->module != VK_NULL_HANDLE) {
        inlined = find_digest(contents, KN_CONTENT_MODULE, (uint64_t)stage->module, digest);
        add_bytes(to, "code", digest, sizeof(digest));
    }
    to->unknown |= !inlined;
    add_bytes(to, "entry", stage->pName, strlen(stage->pName));
    add_number(to, "stage-flags", stage->flags);
    add_constants(to, stage->pSpecializationInfo);
}

static void add_link(description *to, const VkBaseInStructure *link)
{
    if (link->sType == VK_STRUCTURE_TYPE_PIPELINE_CREATION_FEEDBACK_CREATE_INFO) {
        return; /* an answer, and no question */
    }
    add_number(to, "next", link->sType);
    if (link->sType == VK_STRUCTURE_TYPE_PIPELINE_ROBUSTNESS_CREATE_INFO_EXT) {
        const VkPipelineRobustnessCreateInfoEXT *robust = (const void *)link;
        add_number(to, "robust", robust->storageBuffers);
        add_number(to, "robust", robust->uniformBuffers);
        add_number(to, "robust", robust->vertexInputs);
        add_number(to, "robust", robust->images);
    }
}

uint64_t kn_contents_flags2(const VkComputePipelineCreateInfo *info)
{
    for (const VkBaseInStructure *at = info->pNext; at != NULL; at = at->pNext) {
        if (at->sType == (VkStructureType)TYPE_FLAGS2) {
            return ((const flags2_info *)(const void *)at)->flags;
        }
    }
    return 0;
}

kiln_status kn_contents_add_pipeline(kn_layer_contents *contents,
                                     const VkComputePipelineCreateInfo *info, kiln_recipe *recipe,
                                     kiln_diag *diag)
{
    description to = {recipe, false};
    uint8_t layout[KN_DIGEST_SIZE];
    if (!find_digest(contents, KN_CONTENT_LAYOUT, (uint64_t)info->layout, layout)) {
        return KILN_E_UNSUPPORTED;
    }
    /* Whether it may be compiled now does not change what is made. */
    const uint64_t manner = VK_PIPELINE_CREATE_FAIL_ON_PIPELINE_COMPILE_REQUIRED_BIT |
                            VK_PIPELINE_CREATE_EARLY_RETURN_ON_FAILURE_BIT;
    add_number(&to, "flags", info->flags & ~manner);
    add_number(&to, "flags2", kn_contents_flags2(info) & ~manner);
    add_bytes(&to, "layout", layout, sizeof(layout));
    add_stage(&to, contents, &info->stage);
    for (const VkBaseInStructure *at = info->pNext; at != NULL; at = at->pNext) {
        add_link(&to, at);
    }
    return to.unknown ? KILN_E_UNSUPPORTED : kiln_recipe_status(recipe, diag);
}
