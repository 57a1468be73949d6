/* A Vulkan device for dropin_vulkan: its functions, one queue, two buffers of BYTES in a set. All
 * of it goes with the process. */
#ifndef KILN_TESTS_CONFORMANCE_DROPIN_VULKAN_DEVICE_H
#define KILN_TESTS_CONFORMANCE_DROPIN_VULKAN_DEVICE_H

#include <stdbool.h>

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include "support/cmocka.h"

#define BYTES 256 /* of each buffer */

#define INSTANCE_FUNCTIONS(X)                                                                      \
    X(vkEnumeratePhysicalDevices)                                                                  \
    X(vkGetPhysicalDeviceProperties2)                                                              \
    X(vkGetPhysicalDeviceFeatures2)                                                                \
    X(vkGetPhysicalDeviceMemoryProperties)                                                         \
    X(vkGetPhysicalDeviceQueueFamilyProperties)                                                    \
    X(vkEnumerateDeviceExtensionProperties)                                                        \
    X(vkCreateDevice)                                                                              \
    X(vkGetDeviceProcAddr)
#define DEVICE_FUNCTIONS(X)                                                                        \
    X(vkDestroyDevice)                                                                             \
    X(vkGetDeviceQueue)                                                                            \
    X(vkCreateShaderModule)                                                                        \
    X(vkDestroyShaderModule)                                                                       \
    X(vkCreateDescriptorSetLayout)                                                                 \
    X(vkCreatePipelineLayout)                                                                      \
    X(vkDestroyPipeline)                                                                           \
    X(vkCreateDescriptorPool)                                                                      \
    X(vkAllocateDescriptorSets)                                                                    \
    X(vkUpdateDescriptorSets)                                                                      \
    X(vkCreateBuffer)                                                                              \
    X(vkGetBufferMemoryRequirements)                                                               \
    X(vkAllocateMemory)                                                                            \
    X(vkBindBufferMemory)                                                                          \
    X(vkMapMemory)                                                                                 \
    X(vkCreateCommandPool)                                                                         \
    X(vkAllocateCommandBuffers)                                                                    \
    X(vkBeginCommandBuffer)                                                                        \
    X(vkCmdBindPipeline)                                                                           \
    X(vkCmdBindDescriptorSets)                                                                     \
    X(vkCmdDispatch)                                                                               \
    X(vkEndCommandBuffer)                                                                          \
    X(vkQueueSubmit)                                                                               \
    X(vkQueueWaitIdle)

typedef struct dropin_vk {
#define MEMBER(name) PFN_##name name;
    INSTANCE_FUNCTIONS(MEMBER)
    DEVICE_FUNCTIONS(MEMBER)
#undef MEMBER
    /* VK_KHR_pipeline_executable_properties; NULL without it */
    PFN_vkGetPipelineExecutablePropertiesKHR properties;
    PFN_vkGetPipelineExecutableStatisticsKHR statistics;
    PFN_vkGetPipelineExecutableInternalRepresentationsKHR representations;
} dropin_vk;

/* A device, and what a launch takes. */
typedef struct dropin_site {
    VkInstance instance;
    VkPhysicalDevice physical;
    VkDevice device;
    VkQueue queue;
    VkDescriptorSetLayout sets;
    VkPipelineLayout layout;
    VkDescriptorSet set;
    VkCommandBuffer commands;
    unsigned *words[2];         /* of the buffers, mapped for good */
    uint32_t smallest, largest; /* of a subgroup; 0: it cannot be asked for */
    bool full_subgroups;
    char dir[256];
} dropin_site;

extern dropin_vk vk;
extern dropin_site here;

#define OK(call) assert_int_equal((call), VK_SUCCESS)

/* False without a loader. */
bool dropin_vulkan_open(void);
/* Makes it `here`. False where it has no queue for compute, or cannot be opened. */
bool dropin_vulkan_open_device(VkPhysicalDevice physical);

#endif
