/* Storage and staging buffers out of the device's memory pool. */
#include <stdlib.h>
#include <string.h>

#include "apis/vulkan/backend/instance.h"
#include "base/diag.h"

#define MOST_PADDING ((VkDeviceSize)32 << 20) /* that a driver may add, besides as much again */

kiln_status kn_vk_buffer_init(kn_vk_device *device, size_t size, VkMemoryPropertyFlags wanted,
                              kn_vk_buffer *out_buffer, kiln_diag *diag)
{
    memset(out_buffer, 0, sizeof(*out_buffer));
    const VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        /* vkCmdFillBuffer works in words. */
        .size = ((VkDeviceSize)size + 3) & ~(VkDeviceSize)3,
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT |
                 VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT,
        .sharingMode = VK_SHARING_MODE_EXCLUSIVE,
    };
    VkResult result = device->fn.vkCreateBuffer(device->handle, &info, NULL, &out_buffer->handle);
    if (result != VK_SUCCESS) {
        out_buffer->handle = VK_NULL_HANDLE;
        return kn_vk_fail(result, "vkCreateBuffer", diag);
    }
    VkMemoryRequirements requirements;
    device->fn.vkGetBufferMemoryRequirements(device->handle, out_buffer->handle, &requirements);
    const bool staging = (wanted & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) != 0;
    kiln_status status = KILN_OK;
    if (requirements.size < info.size || requirements.size / 2 > info.size + MOST_PADDING) {
        /* Others' bytes would be written to, or memory be used up for nothing. */
        status =
            kiln_diag_set(diag, KILN_E_INTERNAL, "update the Vulkan driver", "buffer",
                          "the driver takes %llu bytes for %llu",
                          (unsigned long long)requirements.size, (unsigned long long)info.size);
    } else {
        status = kn_vk_pool_get(device->memory, &requirements, staging ? wanted : 0,
                                staging ? VK_MEMORY_PROPERTY_HOST_CACHED_BIT
                                        : VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
                                &out_buffer->memory, diag);
    }
    if (status == KILN_OK) {
        result =
            device->fn.vkBindBufferMemory(device->handle, out_buffer->handle,
                                          out_buffer->memory.handle, out_buffer->memory.offset);
        if (result != VK_SUCCESS) {
            status = kn_vk_fail(result, "vkBindBufferMemory", diag);
        }
    }
    if (status != KILN_OK) {
        kn_vk_buffer_deinit(device, out_buffer);
        return status;
    }
    out_buffer->size = size;
    return KILN_OK;
}

void kn_vk_buffer_deinit(kn_vk_device *device, kn_vk_buffer *buffer)
{
    if (buffer->handle != VK_NULL_HANDLE) {
        device->fn.vkDestroyBuffer(device->handle, buffer->handle, NULL);
        buffer->handle = VK_NULL_HANDLE;
    }
    kn_vk_pool_put(device->memory, &buffer->memory);
    buffer->size = 0;
}

kiln_status kn_vk_buffer_create(void *opaque, size_t size, void **out_buffer, kiln_diag *diag)
{
    kn_vk_device *device = (kn_vk_device *)opaque;
    *out_buffer = NULL;
    if (size > device->physical->properties.limits.maxStorageBufferRange) {
        return kiln_diag_set(diag, KILN_E_NOMEM, "split it into several", "creating a buffer",
                             "%zu bytes; this device's buffers have at most %u", size,
                             device->physical->properties.limits.maxStorageBufferRange);
    }
    kn_vk_buffer *buffer = (kn_vk_buffer *)malloc(sizeof(*buffer));
    if (buffer == NULL) {
        return kn_no_memory(diag, "buffer");
    }
    kiln_status status = kn_vk_buffer_init(device, size, 0, buffer, diag);
    if (status != KILN_OK) {
        free(buffer);
        return status;
    }
    *out_buffer = buffer;
    return KILN_OK;
}

void kn_vk_buffer_destroy(void *opaque, void *handle)
{
    kn_vk_device *device = (kn_vk_device *)opaque;
    kn_vk_buffer *buffer = (kn_vk_buffer *)handle;
    if (buffer == NULL) {
        return;
    }
    kn_mutex_lock(&device->queue_lock);
    (void)device->fn.vkDeviceWaitIdle(device->handle); /* work that uses it may be in any queue */
    kn_mutex_unlock(&device->queue_lock);
    kn_vk_buffer_deinit(device, buffer);
    free(buffer);
}
