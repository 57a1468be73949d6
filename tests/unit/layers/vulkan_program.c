/* See vulkan_program.h. */
#include "interpose/session.h"

#include "vulkan_program.h"

/* --- what the core asks of its process -------------------------------------------------------- */

kiln_cache *cache;
static _Atomic int events;

kiln_cache *kn_session_cache(void)
{
    return cache;
}

void kn_session_report(const kn_session_event *event)
{
    assert_string_equal(event->what, "vulkan");
    events++;
}

kiln_cache *open_cache(const char *dir, uint32_t flags)
{
    kiln_cache_options options;
    kiln_cache *opened = NULL;
    assert_int_equal(kiln_cache_options_init(&options, NULL), KILN_OK);
    options.root = dir;
    options.flags = flags;
    assert_int_equal(kiln_cache_create(&options, &opened, NULL), KILN_OK);
    return opened;
}

void next_process(const char *dir)
{
    kiln_cache_destroy(cache);
    cache = open_cache(dir, 0);
}

/* --- a program -------------------------------------------------------------------------------- */

static VKAPI_ATTR void VKAPI_CALL fake_properties(VkPhysicalDevice device,
                                                  VkPhysicalDeviceProperties *out)
{
    (void)device;
    memset(out, 0, sizeof(*out));
    out->apiVersion = VK_API_VERSION_1_0;
    out->vendorID = fake.vendor;
    out->deviceID = fake.device;
    out->deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
    memcpy(out->pipelineCacheUUID, fake.uuid, VK_UUID_SIZE);
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL fake_device_proc(VkDevice device, const char *name)
{
    (void)device;
    return fake_find(name);
}

VkDevice begin_named(world *program, const char *application, bool passes)
{
    const kn_vk_layer_device_info info = {.physical = VK_NULL_HANDLE,
                                          .device = (VkDevice)(void *)program,
                                          .properties = fake_properties,
                                          .device_proc = fake_device_proc,
                                          .api_version = VK_API_VERSION_1_0,
                                          .program = "program",
                                          .application = application,
                                          .engine = "",
                                          .passes = passes};
    program->table = &program->table_bytes;
    assert_true(kn_interpose_vulkan()->open_device(&info));
    return info.device;
}

VkDevice begin(world *program)
{
    return begin_named(program, "test", false);
}

void end(VkDevice device)
{
    kn_interpose_vulkan()->close_device(device);
}

/* A module with a compute entry; its number is in the code. */
static VkShaderModule make_module(VkDevice device, uint32_t number)
{
    const uint32_t code[] = {0x07230203u, 0x10000u, 0, 100, 0, (4u << 16) | 15u, 5, number, 0};
    const VkShaderModuleCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                           .codeSize = sizeof(code),
                                           .pCode = code};
    VkShaderModule module = VK_NULL_HANDLE;
    assert_int_equal(CALL(vkCreateShaderModule)(device, &info, NULL, &module), VK_SUCCESS);
    return module;
}

/* With one set of `count` bindings, the first with an immutable sampler. */
static VkPipelineLayout make_layout(VkDevice device, uint32_t count, uint32_t push)
{
    const VkSamplerCreateInfo sampler_info = {.sType = VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO,
                                              .maxLod = 1.0F};
    VkSampler sampler = VK_NULL_HANDLE;
    VkDescriptorSetLayout set = VK_NULL_HANDLE;
    VkPipelineLayout layout = VK_NULL_HANDLE;
    assert_int_equal(CALL(vkCreateSampler)(device, &sampler_info, NULL, &sampler), VK_SUCCESS);
    VkDescriptorSetLayoutBinding bindings[4] = {
        {.descriptorCount = 1, .pImmutableSamplers = &sampler}};
    for (uint32_t i = 1; i < 4; i++) {
        bindings[i] =
            (VkDescriptorSetLayoutBinding){.binding = i,
                                           .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                           .descriptorCount = 1};
    }
    const VkDescriptorSetLayoutCreateInfo set_info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = count,
        .pBindings = bindings};
    assert_int_equal(CALL(vkCreateDescriptorSetLayout)(device, &set_info, NULL, &set), VK_SUCCESS);
    const VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, push};
    const VkPipelineLayoutCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                             .setLayoutCount = 1,
                                             .pSetLayouts = &set,
                                             .pushConstantRangeCount = 1,
                                             .pPushConstantRanges = &range};
    assert_int_equal(CALL(vkCreatePipelineLayout)(device, &info, NULL, &layout), VK_SUCCESS);
    CALL(vkDestroyDescriptorSetLayout)(device, set, NULL);
    CALL(vkDestroySampler)(device, sampler, NULL);
    return layout;
}

const wish plain = {.module = 1, .bindings = 2, .push = 16};

VkResult make_compute(VkDevice device, const wish *wanted)
{
    const VkSpecializationMapEntry row = {0, 0, sizeof(uint32_t)};
    const VkSpecializationInfo constants = {1, &row, sizeof(uint32_t), &wanted->constant};
    VkPipelineLayout layout = make_layout(device, wanted->bindings, wanted->push);
    const VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .pNext = wanted->next,
        .flags = wanted->flags,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .pNext = wanted->stage_next,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = make_module(device, wanted->module),
                  .pName = "main",
                  .pSpecializationInfo = &constants},
        .layout = layout};
    VkPipeline made = (VkPipeline)(uintptr_t)0x17;
    const VkResult result =
        CALL(vkCreateComputePipelines)(device, wanted->own, 1, &info, wanted->allocator, &made);
    assert_int_equal(made == VK_NULL_HANDLE, result != VK_SUCCESS);
    ((PFN_vkDestroyPipeline)fake_find("vkDestroyPipeline"))(device, made, wanted->allocator);
    CALL(vkDestroyShaderModule)(device, info.stage.module, NULL);
    CALL(vkDestroyPipelineLayout)(device, layout, NULL);
    return result;
}

void make_graphics(VkDevice device, VkPipelineCache own, uint32_t number)
{
    const VkPipelineShaderStageCreateInfo stage = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
        .stage = VK_SHADER_STAGE_VERTEX_BIT,
        .module = make_module(device, number),
        .pName = "main"};
    const VkGraphicsPipelineCreateInfo info = {.sType =
                                                   VK_STRUCTURE_TYPE_GRAPHICS_PIPELINE_CREATE_INFO,
                                               .stageCount = 1,
                                               .pStages = &stage};
    VkPipeline made = VK_NULL_HANDLE;
    assert_int_equal(CALL(vkCreateGraphicsPipelines)(device, own, 1, &info, NULL, &made),
                     VK_SUCCESS);
    ((PFN_vkDestroyPipeline)fake_find("vkDestroyPipeline"))(device, made, NULL);
    CALL(vkDestroyShaderModule)(device, stage.module, NULL);
}

void make_rays(VkDevice device, uint32_t number)
{
    const VkPipelineShaderStageCreateInfo stage = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
        .module = make_module(device, number),
        .pName = "main"};
    const VkRayTracingPipelineCreateInfoKHR info = {
        .sType = VK_STRUCTURE_TYPE_RAY_TRACING_PIPELINE_CREATE_INFO_KHR,
        .stageCount = 1,
        .pStages = &stage};
    VkPipeline made = VK_NULL_HANDLE;
    const VkDeferredOperationKHR operation = (VkDeferredOperationKHR)(uintptr_t)8;
    assert_int_equal(CALL(vkCreateRayTracingPipelinesKHR)(device, operation, VK_NULL_HANDLE, 1,
                                                          &info, NULL, &made),
                     VK_OPERATION_NOT_DEFERRED_KHR);
    ((PFN_vkDestroyPipeline)fake_find("vkDestroyPipeline"))(device, made, NULL);
    CALL(vkDestroyShaderModule)(device, stage.module, NULL);
}

int compiled_since(void)
{
    return atomic_exchange(&fake.compiled, 0);
}

int hits_since(void)
{
    return atomic_exchange(&fake.hits, 0);
}

int set_up(void **state)
{
    if (kt_tmpdir_setup(state) != 0) {
        return -1;
    }
    cache = open_cache((const char *)*state, 0);
    (void)compiled_since();
    (void)hits_since();
    return 0;
}

int tear_down(void **state)
{
    kiln_cache_destroy(cache);
    cache = NULL;
    return kt_tmpdir_teardown(state);
}
