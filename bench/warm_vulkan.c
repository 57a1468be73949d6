/* A warm start on Vulkan by hand: what a program would write itself with its SPIR-V and its
 * pipeline data in files. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vulkan/vulkan.h>

#include "bench/bench.h"
#include "bench/warm.h"

const char warm_glsl_text[] =
    "#version 450\n"
    "#include <kiln.glsl>\n"
    "layout(local_size_x = 8, local_size_y = 8) in;\n"
    "KILN_VALUES_BEGIN\n"
    "KILN_VALUE(0, int, n)\n"
    "KILN_VALUES_END\n"
    "KILN_BUFFER(0, float, a)\n"
    "KILN_BUFFER(1, float, b)\n"
    "KILN_BUFFER(2, float, c)\n"
    "void main()\n"
    "{\n"
    "    int x = int(gl_GlobalInvocationID.x), y = int(gl_GlobalInvocationID.y);\n"
    "    float sum = 0.0;\n"
    "    for (int i = 0; i < n; i++) { sum += a[y * n + i] * b[i * n + x]; }\n"
    "    c[y * n + x] = sum;\n"
    "}\n";

/* The loader exports these; looked up in the library that kiln would open. */
#define CALLS(X)                                                                                   \
    X(vkCreateInstance)                                                                            \
    X(vkEnumeratePhysicalDevices)                                                                  \
    X(vkGetPhysicalDeviceMemoryProperties)                                                         \
    X(vkGetPhysicalDeviceQueueFamilyProperties)                                                    \
    X(vkCreateDevice)                                                                              \
    X(vkGetDeviceQueue)                                                                            \
    X(vkCreateCommandPool)                                                                         \
    X(vkAllocateCommandBuffers)                                                                    \
    X(vkCreatePipelineCache)                                                                       \
    X(vkCreateShaderModule)                                                                        \
    X(vkCreateDescriptorSetLayout)                                                                 \
    X(vkCreatePipelineLayout)                                                                      \
    X(vkCreateComputePipelines)                                                                    \
    X(vkCreateBuffer)                                                                              \
    X(vkGetBufferMemoryRequirements)                                                               \
    X(vkAllocateMemory)                                                                            \
    X(vkBindBufferMemory)                                                                          \
    X(vkMapMemory)                                                                                 \
    X(vkCreateDescriptorPool)                                                                      \
    X(vkAllocateDescriptorSets)                                                                    \
    X(vkUpdateDescriptorSets)                                                                      \
    X(vkBeginCommandBuffer)                                                                        \
    X(vkCmdBindPipeline)                                                                           \
    X(vkCmdBindDescriptorSets)                                                                     \
    X(vkCmdPushConstants)                                                                          \
    X(vkCmdDispatch)                                                                               \
    X(vkEndCommandBuffer)                                                                          \
    X(vkQueueSubmit)                                                                               \
    X(vkQueueWaitIdle)                                                                             \
    X(vkDestroyDescriptorPool)                                                                     \
    X(vkDestroyBuffer)                                                                             \
    X(vkFreeMemory)                                                                                \
    X(vkDestroyPipeline)                                                                           \
    X(vkDestroyShaderModule)                                                                       \
    X(vkDestroyPipelineCache)                                                                      \
    X(vkDestroyPipelineLayout)                                                                     \
    X(vkDestroyDescriptorSetLayout)                                                                \
    X(vkDestroyCommandPool)                                                                        \
    X(vkDestroyDevice)                                                                             \
    X(vkDestroyInstance)

static struct {
#define X(name) PFN_##name name;
    CALLS(X)
#undef X
} vk;

enum { BYTES = WARM_SIZE * WARM_SIZE * sizeof(float) };

typedef struct ready {
    VkInstance instance;
    VkPhysicalDevice physical;
    VkDevice device;
    VkQueue queue;
    VkCommandPool pool;
    VkCommandBuffer commands;
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkPipelineCache cache;
    VkShaderModule module;
    VkPipeline pipeline;
    VkBuffer buffers[3];
    VkDeviceMemory memory;
    VkDescriptorPool sets;
} ready;

static ready last; /* what measure made */

void warm_vulkan_destroy(void)
{
    const ready *r = &last;
    if (r->device != VK_NULL_HANDLE) {
        vk.vkDestroyDescriptorPool(r->device, r->sets, NULL);
        for (int i = 0; i < 3; i++) {
            vk.vkDestroyBuffer(r->device, r->buffers[i], NULL);
        }
        vk.vkFreeMemory(r->device, r->memory, NULL);
        vk.vkDestroyPipeline(r->device, r->pipeline, NULL);
        vk.vkDestroyShaderModule(r->device, r->module, NULL);
        vk.vkDestroyPipelineCache(r->device, r->cache, NULL);
        vk.vkDestroyPipelineLayout(r->device, r->layout, NULL);
        vk.vkDestroyDescriptorSetLayout(r->device, r->set_layout, NULL);
        vk.vkDestroyCommandPool(r->device, r->pool, NULL);
        vk.vkDestroyDevice(r->device, NULL);
        vk.vkDestroyInstance(r->instance, NULL);
    }
}

static bool open_library(void)
{
    void *library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    void *symbol = NULL;
    bool whole = library != NULL;
#define X(name)                                                                                    \
    symbol = whole ? dlsym(library, #name) : NULL;                                                 \
    whole = whole && symbol != NULL;                                                               \
    memcpy(&vk.name, &symbol, sizeof(symbol));
    CALLS(X)
#undef X
    return whole;
}

/* The first device, as kiln numbers them. */
static bool make_ready(ready *r)
{
    const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                           .apiVersion = VK_API_VERSION_1_1};
    const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                       .pApplicationInfo = &application};
    const float priority = 1.0F;
    VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                     .queueCount = 1,
                                     .pQueuePriorities = &priority};
    const VkDeviceCreateInfo device = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                       .queueCreateInfoCount = 1,
                                       .pQueueCreateInfos = &queue};
    VkQueueFamilyProperties families[32];
    uint32_t count = 1, family_count = 32;
    if (vk.vkCreateInstance(&info, NULL, &r->instance) != VK_SUCCESS ||
        vk.vkEnumeratePhysicalDevices(r->instance, &count, &r->physical) < 0 || count == 0) {
        return false;
    }
    vk.vkGetPhysicalDeviceQueueFamilyProperties(r->physical, &family_count, families);
    for (uint32_t i = family_count; i > 0; i--) {
        if ((families[i - 1].queueFlags & VK_QUEUE_COMPUTE_BIT) != 0) {
            queue.queueFamilyIndex = i - 1;
        }
    }
    if (vk.vkCreateDevice(r->physical, &device, NULL, &r->device) != VK_SUCCESS) {
        return false;
    }
    vk.vkGetDeviceQueue(r->device, queue.queueFamilyIndex, 0, &r->queue);
    const VkCommandPoolCreateInfo pool_info = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                               .queueFamilyIndex = queue.queueFamilyIndex};
    if (vk.vkCreateCommandPool(r->device, &pool_info, NULL, &r->pool) != VK_SUCCESS) {
        return false;
    }
    const VkCommandBufferAllocateInfo allocate = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = r->pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1};
    return vk.vkAllocateCommandBuffers(r->device, &allocate, &r->commands) == VK_SUCCESS;
}

static bool make_pipeline(ready *r, const void *code, size_t code_size, const void *data,
                          size_t size)
{
    VkDescriptorSetLayoutBinding bindings[3];
    for (uint32_t i = 0; i < 3; i++) {
        bindings[i] = (VkDescriptorSetLayoutBinding){i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1,
                                                     VK_SHADER_STAGE_COMPUTE_BIT, NULL};
    }
    const VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, 4};
    const VkDescriptorSetLayoutCreateInfo set_info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = 3,
        .pBindings = bindings};
    const VkPipelineLayoutCreateInfo layout_info = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
        .setLayoutCount = 1,
        .pSetLayouts = &r->set_layout,
        .pushConstantRangeCount = 1,
        .pPushConstantRanges = &range};
    const VkPipelineCacheCreateInfo cache_info = {.sType =
                                                      VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
                                                  .initialDataSize = size,
                                                  .pInitialData = data};
    const VkShaderModuleCreateInfo module_info = {.sType =
                                                      VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                                  .codeSize = code_size,
                                                  .pCode = (const uint32_t *)code};
    if (vk.vkCreateDescriptorSetLayout(r->device, &set_info, NULL, &r->set_layout) != VK_SUCCESS ||
        vk.vkCreatePipelineLayout(r->device, &layout_info, NULL, &r->layout) != VK_SUCCESS ||
        vk.vkCreatePipelineCache(r->device, &cache_info, NULL, &r->cache) != VK_SUCCESS ||
        vk.vkCreateShaderModule(r->device, &module_info, NULL, &r->module) != VK_SUCCESS) {
        return false;
    }
    const VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = r->module,
                  .pName = "main"},
        .layout = r->layout};
    return vk.vkCreateComputePipelines(r->device, r->cache, 1, &info, NULL, &r->pipeline) ==
           VK_SUCCESS;
}

static uint32_t mappable_memory(const ready *r, uint32_t allowed)
{
    const VkMemoryPropertyFlags wanted =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    VkPhysicalDeviceMemoryProperties memory;
    vk.vkGetPhysicalDeviceMemoryProperties(r->physical, &memory);
    uint32_t i = 0;
    while (i < memory.memoryTypeCount &&
           ((allowed >> i & 1U) == 0 || (memory.memoryTypes[i].propertyFlags & wanted) != wanted)) {
        i++;
    }
    return i;
}

static bool make_buffers(ready *r, void **mapped)
{
    const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                     .size = BYTES,
                                     .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT};
    VkMemoryRequirements needs = {0};
    for (int i = 0; i < 3; i++) {
        if (vk.vkCreateBuffer(r->device, &info, NULL, &r->buffers[i]) != VK_SUCCESS) {
            return false;
        }
        vk.vkGetBufferMemoryRequirements(r->device, r->buffers[i], &needs);
    }
    const VkDeviceSize step =
        (needs.size + needs.alignment - 1) / needs.alignment * needs.alignment;
    const VkMemoryAllocateInfo allocate = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                           .allocationSize = 3 * step,
                                           .memoryTypeIndex =
                                               mappable_memory(r, needs.memoryTypeBits)};
    if (vk.vkAllocateMemory(r->device, &allocate, NULL, &r->memory) != VK_SUCCESS ||
        vk.vkMapMemory(r->device, r->memory, 0, VK_WHOLE_SIZE, 0, mapped) != VK_SUCCESS) {
        return false;
    }
    for (uint32_t i = 0; i < 3; i++) {
        (void)vk.vkBindBufferMemory(r->device, r->buffers[i], r->memory, i * step);
    }
    memset(*mapped, 0, (size_t)(3 * step));
    return true;
}

static bool make_set(ready *r, VkDescriptorSet *set)
{
    const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 3};
    const VkDescriptorPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                             .maxSets = 1,
                                             .poolSizeCount = 1,
                                             .pPoolSizes = &size};
    VkDescriptorBufferInfo places[3];
    if (vk.vkCreateDescriptorPool(r->device, &info, NULL, &r->sets) != VK_SUCCESS) {
        return false;
    }
    const VkDescriptorSetAllocateInfo allocate = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
        .descriptorPool = r->sets,
        .descriptorSetCount = 1,
        .pSetLayouts = &r->set_layout};
    if (vk.vkAllocateDescriptorSets(r->device, &allocate, set) != VK_SUCCESS) {
        return false;
    }
    for (int i = 0; i < 3; i++) {
        places[i] = (VkDescriptorBufferInfo){r->buffers[i], 0, VK_WHOLE_SIZE};
    }
    const VkWriteDescriptorSet write = {.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                        .dstSet = *set,
                                        .descriptorCount = 3,
                                        .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                        .pBufferInfo = places};
    vk.vkUpdateDescriptorSets(r->device, 1, &write, 0, NULL);
    return true;
}

static bool run(ready *r)
{
    void *mapped = NULL;
    VkDescriptorSet set = VK_NULL_HANDLE;
    const int n = WARM_SIZE;
    const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    if (!make_buffers(r, &mapped) || !make_set(r, &set) ||
        vk.vkBeginCommandBuffer(r->commands, &begin) != VK_SUCCESS) {
        return false;
    }
    vk.vkCmdBindPipeline(r->commands, VK_PIPELINE_BIND_POINT_COMPUTE, r->pipeline);
    vk.vkCmdBindDescriptorSets(r->commands, VK_PIPELINE_BIND_POINT_COMPUTE, r->layout, 0, 1, &set,
                               0, NULL);
    vk.vkCmdPushConstants(r->commands, r->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(n), &n);
    vk.vkCmdDispatch(r->commands, WARM_SIZE / WARM_GROUP, WARM_SIZE / WARM_GROUP, 1);
    (void)vk.vkEndCommandBuffer(r->commands);
    const VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                                 .commandBufferCount = 1,
                                 .pCommandBuffers = &r->commands};
    float c = -1;
    if (vk.vkQueueSubmit(r->queue, 1, &submit, VK_NULL_HANDLE) != VK_SUCCESS ||
        vk.vkQueueWaitIdle(r->queue) != VK_SUCCESS) {
        return false;
    }
    memcpy(&c, (const char *)mapped + 2 * BYTES, sizeof(c));
    return c == 0.0F;
}

/* With a library the SPIR-V is made by it, else it is in `path`.spv. */
static bool measure(const char *path, bool with_data, const char *library)
{
    ready *r = &last;
    char code_path[600];
    size_t size = 0, code_size = 0;
    if (!open_library() || !make_ready(r)) {
        return false;
    }
    const double start = bench_now();
    (void)snprintf(code_path, sizeof(code_path), "%s.spv", path);
    unsigned char *data = with_data ? bench_read(path, &size) : NULL;
    unsigned char *code = library != NULL ? warm_shaderc_compile(library, &code_size)
                                          : bench_read(code_path, &code_size);
    const bool made = (data != NULL || !with_data) && code != NULL &&
                      make_pipeline(r, code, code_size, data, size);
    const double loaded = bench_now();
    free(data);
    free(code);
    if (!made || !run(r)) {
        return false;
    }
    printf("%.3f %.3f\n", (loaded - start) * 1e6, (bench_now() - start) * 1e6);
    return true;
}

bool warm_vulkan_by_hand(const char *path)
{
    return measure(path, true, NULL);
}

bool warm_vulkan_plain(const char *path)
{
    return measure(path, false, NULL);
}

bool warm_vulkan_from_text(const char *library)
{
    return measure("", false, library);
}
