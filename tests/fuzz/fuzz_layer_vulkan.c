/* What the Vulkan layer is given by others: bytes that were stored as a VkPipelineCache's, which
 * reach a driver only under its own header; code and constants of a program's, which are described
 * or left to the driver. */
#include "apis/vulkan/dropin/data.h"
#include "apis/vulkan/layer/contents.h"
#include "fuzz/fuzz.h"

static const VkPipelineCacheHeaderVersionOne ours = {
    .headerSize = sizeof(ours),
    .headerVersion = VK_PIPELINE_CACHE_HEADER_VERSION_ONE,
    .vendorID = 0x1234,
    .deviceID = 0x5678,
    .pipelineCacheUUID = "kiln kiln kiln ",
};

static bool is_ours(const void *data, size_t size)
{
    return size >= sizeof(ours) && memcmp(data, &ours, sizeof(ours)) == 0;
}

/* --- stored data ------------------------------------------------------------------------------ */

static VkResult VKAPI_CALL create_checked(VkDevice device, const VkPipelineCacheCreateInfo *info,
                                          const VkAllocationCallbacks *allocator,
                                          VkPipelineCache *out)
{
    (void)device;
    (void)allocator;
    if (!is_ours(info->pInitialData, info->initialDataSize)) {
        abort();
    }
    *out = (VkPipelineCache)(uintptr_t)1;
    return VK_SUCCESS;
}

static void load_stored_data(const uint8_t *data, size_t size)
{
    kn_vulkan_site site = {.create_cache = create_checked};
    VkPipelineCache cache = VK_NULL_HANDLE;
    kiln_diag diag = KILN_DIAG_INIT;
    site.physical.properties.vendorID = ours.vendorID;
    site.physical.properties.deviceID = ours.deviceID;
    memcpy(site.physical.properties.pipelineCacheUUID, ours.pipelineCacheUUID, VK_UUID_SIZE);
    const kiln_status status =
        size > 0 ? kn_vulkan_make_cache(&site, data, size, &cache, &diag) : KILN_E_REJECTED;
    if (status != (is_ours(data, size) ? KILN_OK : KILN_E_REJECTED)) {
        abort();
    }
    kiln_diag_clear(&diag);
}

/* --- a program's ------------------------------------------------------------------------------ */

/* The first bytes say where the constants of the rest lie, inside it or not. */
static void describe_pipeline(const uint8_t *data, size_t size)
{
    const VkShaderModule module = (VkShaderModule)(uintptr_t)1;
    const VkPipelineLayout layout = (VkPipelineLayout)(uintptr_t)2;
    const size_t head = sizeof(VkSpecializationMapEntry);
    const VkShaderModuleCreateInfo code = {.codeSize = size,
                                           .pCode = (const uint32_t *)(const void *)data};
    const VkPipelineLayoutCreateInfo none = {0};
    VkSpecializationMapEntry row = {0};
    memcpy(&row, data, size < head ? size : head);
    const VkSpecializationInfo constants = {.mapEntryCount = size >= head,
                                            .pMapEntries = &row,
                                            .dataSize = size >= head ? size - head : 0,
                                            .pData = data + (size >= head ? head : 0)};
    const VkComputePipelineCreateInfo info = {
        .stage = {.module = module, .pName = "main", .pSpecializationInfo = &constants},
        .layout = layout};
    kn_layer_contents contents;
    kiln_recipe *recipe = NULL;
    kn_contents_init(&contents);
    kn_contents_add_module(&contents, module, &code);
    kn_contents_add_layout(&contents, layout, &none);
    if (kiln_recipe_create("fuzz", 1, &recipe, NULL) == KILN_OK) {
        const kiln_status status = kn_contents_add_pipeline(&contents, &info, recipe, NULL);
        const bool outside =
            row.offset > constants.dataSize || row.size > constants.dataSize - row.offset;
        if (status == KILN_OK && constants.mapEntryCount > 0 && outside) {
            abort();
        }
        kiln_recipe_destroy(recipe);
    }
    kn_contents_deinit(&contents);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    load_stored_data(data, size);
    /* Code is made of words, at the address of one. */
    uint32_t *words = malloc(size + sizeof(*words));
    if (words != NULL) {
        memset(words, 0, size + sizeof(*words));
        memcpy(words, data, size);
        describe_pipeline((const uint8_t *)words, size);
    }
    free(words);
    return 0;
}
