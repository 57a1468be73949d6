/* A Vulkan program of the ordinary kind, except for two places: vkCreateComputePipelines became
 * kiln_vulkan_create_compute_pipelines, and the VkPipelineCache that it uses for everything else
 * comes from kiln and goes back to it. The second start finds both in the cache.
 *     cc vulkan_pipeline.c $(pkg-config --cflags --libs kiln) -lvulkan && ./a.out */
#include <stdint.h>
#include <stdio.h>
#include <vulkan/vulkan.h>

#include <kiln/vulkan.h>

static const uint32_t code[] = {
#include "scale.spv.inc"
};

static VkDevice create_device(VkPhysicalDevice physical)
{
    const float priority = 1.0F;
    const VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                           .queueCount = 1,
                                           .pQueuePriorities = &priority};
    const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                     .queueCreateInfoCount = 1,
                                     .pQueueCreateInfos = &queue};
    VkDevice device = VK_NULL_HANDLE;
    return vkCreateDevice(physical, &info, NULL, &device) == VK_SUCCESS ? device : VK_NULL_HANDLE;
}

static VkPipelineLayout create_layout(VkDevice device, VkDescriptorSetLayout *set)
{
    const VkDescriptorSetLayoutBinding binding = {0, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1,
                                                  VK_SHADER_STAGE_COMPUTE_BIT, NULL};
    const VkDescriptorSetLayoutCreateInfo set_info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = 1,
        .pBindings = &binding};
    VkPipelineLayout layout = VK_NULL_HANDLE;
    (void)vkCreateDescriptorSetLayout(device, &set_info, NULL, set);
    const VkPipelineLayoutCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                             .setLayoutCount = 1,
                                             .pSetLayouts = set};
    (void)vkCreatePipelineLayout(device, &info, NULL, &layout);
    return layout;
}

static int report(const kiln_diag *diag)
{
    (void)fprintf(stderr, "%s: %s\n", diag->what, diag->why);
    return 1;
}

static int run(const kiln_vulkan_device *where)
{
    VkDevice device = where->device;
    VkDescriptorSetLayout set = VK_NULL_HANDLE;
    VkShaderModule module = VK_NULL_HANDLE;
    VkPipelineCache cache = VK_NULL_HANDLE;
    VkPipeline pipelines[2] = {VK_NULL_HANDLE, VK_NULL_HANDLE};
    kiln_diag diag = KILN_DIAG_INIT;
    const VkShaderModuleCreateInfo module_info = {.sType =
                                                      VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                                  .codeSize = sizeof(code),
                                                  .pCode = code};
    VkPipelineLayout layout = create_layout(device, &set);
    (void)vkCreateShaderModule(device, &module_info, NULL, &module);
    const VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = module,
                  .pName = "main"},
        .layout = layout};

    /* One pipeline, through the cache by its own contents. */
    const kiln_vulkan_code codes = {code, sizeof(code)};
    if (kiln_vulkan_create_compute_pipelines(NULL, where, 1, &info, &codes, &pipelines[0], &diag)) {
        return report(&diag);
    }

    /* Another one, made by the program itself with a VkPipelineCache that kiln keeps. */
    if (kiln_vulkan_pipeline_cache_load(NULL, where, "example", &cache, &diag)) {
        return report(&diag);
    }
    (void)vkCreateComputePipelines(device, cache, 1, &info, NULL, &pipelines[1]);
    if (kiln_vulkan_pipeline_cache_save(NULL, where, "example", cache, 0, &diag)) {
        return report(&diag);
    }

    const int made = pipelines[0] != VK_NULL_HANDLE && pipelines[1] != VK_NULL_HANDLE;
    (void)printf("%s\n", made ? "two pipelines" : "a pipeline is missing");
    vkDestroyPipeline(device, pipelines[0], NULL);
    vkDestroyPipeline(device, pipelines[1], NULL);
    vkDestroyPipelineCache(device, cache, NULL);
    vkDestroyShaderModule(device, module, NULL);
    vkDestroyPipelineLayout(device, layout, NULL);
    vkDestroyDescriptorSetLayout(device, set, NULL);
    return made ? 0 : 1;
}

int main(void)
{
    const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                           .apiVersion = VK_API_VERSION_1_1};
    const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                       .pApplicationInfo = &application};
    VkInstance instance = VK_NULL_HANDLE;
    VkPhysicalDevice physical = VK_NULL_HANDLE;
    uint32_t count = 1;
    if (vkCreateInstance(&info, NULL, &instance) != VK_SUCCESS ||
        vkEnumeratePhysicalDevices(instance, &count, &physical) < 0 || count == 0) {
        (void)fprintf(stderr, "no Vulkan device\n");
        return 77;
    }
    const kiln_vulkan_device where = {.struct_size = sizeof(where),
                                      .instance = instance,
                                      .physical_device = physical,
                                      .device = create_device(physical)};
    const int code_of_exit = where.device != VK_NULL_HANDLE ? run(&where) : 1;
    vkDestroyDevice(where.device, NULL);
    vkDestroyInstance(instance, NULL);
    return code_of_exit;
}
