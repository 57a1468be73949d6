/* vulkan_client SPIRV FIRST COUNT [own|hold|binaries]: makes COUNT compute pipelines that differ in
 * a constant, from FIRST on, and prints what came of each. It knows nothing of kiln. own: with a
 * VkPipelineCache of its own, which it does not save. hold: it then waits to be killed, and says
 * so. binaries: with VK_KHR_pipeline_binary and no such cache. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <vulkan/vulkan.h>

enum { SKIP = 77 };

static void check(VkResult result, const char *what)
{
    if (result != VK_SUCCESS) {
        printf("%s: %d\n", what, (int)result);
        exit(1);
    }
}

static VkDevice make_device(uint32_t extensions)
{
    const VkApplicationInfo program = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                       .pApplicationName = "client",
                                       .apiVersion = VK_API_VERSION_1_1};
    const VkInstanceCreateInfo instance_info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                                .pApplicationInfo = &program};
    const float priority = 1.0F;
    const VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                           .queueCount = 1,
                                           .pQueuePriorities = &priority};
    static const char *const binaries = "VK_KHR_pipeline_binary";
    const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                     .queueCreateInfoCount = 1,
                                     .pQueueCreateInfos = &queue,
                                     .enabledExtensionCount = extensions,
                                     .ppEnabledExtensionNames = &binaries};
    static VkInstance instance;
    VkPhysicalDevice physical = VK_NULL_HANDLE;
    VkDevice device = VK_NULL_HANDLE;
    uint32_t count = 1;
    if (vkCreateInstance(&instance_info, NULL, &instance) != VK_SUCCESS ||
        vkEnumeratePhysicalDevices(instance, &count, &physical) < 0 || count == 0) {
        exit(SKIP);
    }
    check(vkCreateDevice(physical, &info, NULL, &device), "vkCreateDevice");
    return device;
}

static VkShaderModule make_module(VkDevice device, const char *path)
{
    static uint32_t code[16384];
    FILE *file = fopen(path, "rb");
    const size_t size = file != NULL ? fread(code, 1, sizeof(code), file) : 0;
    const VkShaderModuleCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = size, .pCode = code};
    VkShaderModule module = VK_NULL_HANDLE;
    check(vkCreateShaderModule(device, &info, NULL, &module), "vkCreateShaderModule");
    (void)fclose(file);
    return module;
}

static VkPipelineLayout make_layout(VkDevice device, VkDescriptorSetLayout *out_set)
{
    const VkDescriptorSetLayoutBinding binding = {.descriptorType =
                                                      VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                                  .descriptorCount = 1,
                                                  .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
    const VkDescriptorSetLayoutCreateInfo set = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = 1,
        .pBindings = &binding};
    check(vkCreateDescriptorSetLayout(device, &set, NULL, out_set), "vkCreateDescriptorSetLayout");
    const VkPipelineLayoutCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                             .setLayoutCount = 1,
                                             .pSetLayouts = out_set};
    VkPipelineLayout layout = VK_NULL_HANDLE;
    check(vkCreatePipelineLayout(device, &info, NULL, &layout), "vkCreatePipelineLayout");
    return layout;
}

static void make_pipeline(VkDevice device, VkPipelineCache own, VkShaderModule module,
                          VkPipelineLayout layout, uint32_t constant)
{
    const VkSpecializationMapEntry row = {0, 0, sizeof(constant)};
    const VkSpecializationInfo constants = {1, &row, sizeof(constant), &constant};
    const VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = module,
                  .pName = "main",
                  .pSpecializationInfo = &constants},
        .layout = layout};
    VkPipeline made = VK_NULL_HANDLE;
    const VkResult result = vkCreateComputePipelines(device, own, 1, &info, NULL, &made);
    printf("%u: %d %s\n", constant, (int)result, made != VK_NULL_HANDLE ? "made" : "none");
    vkDestroyPipeline(device, made, NULL);
}

int main(int argc, char **argv)
{
    VkDescriptorSetLayout set = VK_NULL_HANDLE;
    VkPipelineCache own = VK_NULL_HANDLE;
    if (argc < 4) {
        return 2;
    }
    const char *how = argc > 4 ? argv[4] : "";
    const bool binaries = strcmp(how, "binaries") == 0;
    VkDevice device = make_device(binaries);
    VkShaderModule module = make_module(device, argv[1]);
    VkPipelineLayout layout = make_layout(device, &set);
    const uint32_t first = (uint32_t)atoi(argv[2]), count = (uint32_t)atoi(argv[3]);
    if (how[0] != '\0' && !binaries) {
        const VkPipelineCacheCreateInfo info = {.sType =
                                                    VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
        check(vkCreatePipelineCache(device, &info, NULL, &own), "vkCreatePipelineCache");
    }
    for (uint32_t i = 0; i < count; i++) {
        make_pipeline(device, own, module, layout, first + i);
    }
    vkDestroyPipelineCache(device, own, NULL);
    vkDestroyShaderModule(device, module, NULL);
    vkDestroyPipelineLayout(device, layout, NULL);
    vkDestroyDescriptorSetLayout(device, set, NULL);
    (void)fflush(stdout);
    if (strcmp(how, "hold") == 0) {
        (void)pause();
    }
    vkDestroyDevice(device, NULL);
    return 0;
}
