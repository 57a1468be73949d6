#include "conformance/dropin_vulkan_device.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

dropin_vk vk;
dropin_site here;

bool dropin_vulkan_open(void)
{
    void *lib = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_GLOBAL); /* never closed */
    PFN_vkGetInstanceProcAddr get = NULL;
    void *symbol = lib != NULL ? dlsym(lib, "vkGetInstanceProcAddr") : NULL;
    memcpy(&get, &symbol, sizeof(symbol));
    if (get == NULL) {
        return false;
    }
    const VkApplicationInfo app = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                   .apiVersion = VK_API_VERSION_1_3};
    const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                       .pApplicationInfo = &app};
    PFN_vkCreateInstance create = (PFN_vkCreateInstance)get(NULL, "vkCreateInstance");
    if (create == NULL || create(&info, NULL, &here.instance) != VK_SUCCESS) {
        return false;
    }
#define FIND(name) vk.name = (PFN_##name)get(here.instance, #name);
    INSTANCE_FUNCTIONS(FIND)
#undef FIND
    return true;
}

/* --- the device ------------------------------------------------------------------------------- */

static bool has_extension(VkPhysicalDevice physical, const char *name)
{
    static VkExtensionProperties list[512];
    uint32_t count = 512;
    if (vk.vkEnumerateDeviceExtensionProperties(physical, NULL, &count, list) < 0) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(list[i].extensionName, name) == 0) {
            return true;
        }
    }
    return false;
}

static uint32_t find_family(VkPhysicalDevice physical)
{
    VkQueueFamilyProperties families[16];
    uint32_t count = 16;
    vk.vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, families);
    for (uint32_t i = 0; i < count; i++) {
        if ((families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) != 0) {
            return i;
        }
    }
    return UINT32_MAX;
}

static void make_buffer(VkBuffer *buffer, unsigned **words)
{
    const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                     .size = BYTES,
                                     .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT};
    const VkMemoryPropertyFlags wanted =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    VkPhysicalDeviceMemoryProperties types;
    VkMemoryRequirements needs;
    VkDeviceMemory memory = VK_NULL_HANDLE;
    uint32_t type = 0;
    void *mapped = NULL;
    OK(vk.vkCreateBuffer(here.device, &info, NULL, buffer));
    vk.vkGetBufferMemoryRequirements(here.device, *buffer, &needs);
    vk.vkGetPhysicalDeviceMemoryProperties(here.physical, &types);
    while (type < types.memoryTypeCount &&
           ((needs.memoryTypeBits >> type & 1u) == 0 ||
            (types.memoryTypes[type].propertyFlags & wanted) != wanted)) {
        type++;
    }
    const VkMemoryAllocateInfo allocate = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                           .allocationSize = needs.size,
                                           .memoryTypeIndex = type};
    OK(vk.vkAllocateMemory(here.device, &allocate, NULL, &memory));
    OK(vk.vkBindBufferMemory(here.device, *buffer, memory, 0));
    OK(vk.vkMapMemory(here.device, memory, 0, VK_WHOLE_SIZE, 0, &mapped));
    *words = (unsigned *)mapped;
}

/* Layouts, two buffers and a set with them. All goes with the process. */
static void make_set(void)
{
    VkDescriptorSetLayoutBinding bindings[2];
    VkDescriptorBufferInfo infos[2];
    VkWriteDescriptorSet writes[2];
    VkDescriptorPool pool = VK_NULL_HANDLE;
    for (uint32_t i = 0; i < 2; i++) {
        bindings[i] = (VkDescriptorSetLayoutBinding){i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1,
                                                     VK_SHADER_STAGE_COMPUTE_BIT, NULL};
    }
    const VkDescriptorSetLayoutCreateInfo sets = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = 2,
        .pBindings = bindings};
    OK(vk.vkCreateDescriptorSetLayout(here.device, &sets, NULL, &here.sets));
    const VkPipelineLayoutCreateInfo layout = {.sType =
                                                   VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                               .setLayoutCount = 1,
                                               .pSetLayouts = &here.sets};
    OK(vk.vkCreatePipelineLayout(here.device, &layout, NULL, &here.layout));
    const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 2};
    const VkDescriptorPoolCreateInfo pools = {.sType =
                                                  VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                              .maxSets = 1,
                                              .poolSizeCount = 1,
                                              .pPoolSizes = &size};
    OK(vk.vkCreateDescriptorPool(here.device, &pools, NULL, &pool));
    const VkDescriptorSetAllocateInfo allocate = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
        .descriptorPool = pool,
        .descriptorSetCount = 1,
        .pSetLayouts = &here.sets};
    OK(vk.vkAllocateDescriptorSets(here.device, &allocate, &here.set));
    for (uint32_t i = 0; i < 2; i++) {
        VkBuffer buffer = VK_NULL_HANDLE;
        make_buffer(&buffer, &here.words[i]);
        infos[i] = (VkDescriptorBufferInfo){buffer, 0, VK_WHOLE_SIZE};
        writes[i] = (VkWriteDescriptorSet){.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                           .dstSet = here.set,
                                           .dstBinding = i,
                                           .descriptorCount = 1,
                                           .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                           .pBufferInfo = &infos[i]};
    }
    vk.vkUpdateDescriptorSets(here.device, 2, writes, 0, NULL);
}

static void bind_device(bool tells)
{
#define FIND(name) vk.name = (PFN_##name)vk.vkGetDeviceProcAddr(here.device, #name);
    DEVICE_FUNCTIONS(FIND)
#undef FIND
#define FIND(field, name)                                                                          \
    vk.field = tells ? (PFN_##name)vk.vkGetDeviceProcAddr(here.device, #name) : NULL;
    FIND(properties, vkGetPipelineExecutablePropertiesKHR)
    FIND(statistics, vkGetPipelineExecutableStatisticsKHR)
    FIND(representations, vkGetPipelineExecutableInternalRepresentationsKHR)
#undef FIND
}

static void make_commands(uint32_t family)
{
    const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                          .queueFamilyIndex = family};
    VkCommandBufferAllocateInfo commands = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                            .commandBufferCount = 1};
    OK(vk.vkCreateCommandPool(here.device, &pool, NULL, &commands.commandPool));
    OK(vk.vkAllocateCommandBuffers(here.device, &commands, &here.commands));
}

bool dropin_vulkan_open_device(VkPhysicalDevice physical)
{
    static const char executables[] = VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME;
    static const char *const names[] = {executables};
    const float priority = 1.0F;
    const uint32_t family = find_family(physical);
    const bool tells = has_extension(physical, executables);
    VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR told = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR,
        .pipelineExecutableInfo = VK_TRUE};
    VkPhysicalDeviceSubgroupSizeControlFeatures sizes = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES};
    VkPhysicalDeviceSubgroupSizeControlProperties limits = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES};
    VkPhysicalDeviceFeatures2 features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                          .pNext = &sizes};
    VkPhysicalDeviceProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &limits};
    if (family == UINT32_MAX) {
        return false;
    }
    vk.vkGetPhysicalDeviceProperties2(physical, &properties);
    const bool new = properties.properties.apiVersion >= VK_API_VERSION_1_3;
    if (new) {
        vk.vkGetPhysicalDeviceFeatures2(physical, &features);
    }
    sizes.pNext = tells ? &told : NULL;
    const VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                           .queueFamilyIndex = family,
                                           .queueCount = 1,
                                           .pQueuePriorities = &priority};
    const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                     .pNext = new ? (void *)&sizes : sizes.pNext,
                                     .queueCreateInfoCount = 1,
                                     .pQueueCreateInfos = &queue,
                                     .enabledExtensionCount = tells ? 1 : 0,
                                     .ppEnabledExtensionNames = names};
    here.physical = physical;
    if (vk.vkCreateDevice(physical, &info, NULL, &here.device) != VK_SUCCESS) {
        return false;
    }
    bind_device(tells);
    const bool asks = sizes.subgroupSizeControl == VK_TRUE &&
                      (limits.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
    here.smallest = asks ? limits.minSubgroupSize : 0;
    here.largest = asks ? limits.maxSubgroupSize : 0;
    here.full_subgroups = sizes.computeFullSubgroups == VK_TRUE;
    vk.vkGetDeviceQueue(here.device, family, 0, &here.queue);
    make_commands(family);
    make_set();
    (void)printf("%s%s\n", properties.properties.deviceName,
                 tells ? "" : " (it does not tell what is in a pipeline)");
    return true;
}
