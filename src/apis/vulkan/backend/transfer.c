/* Copies between host and device, fills, and copies on the device. Where the device is the host's
 * own processor or shares its memory, a blocking copy is a memcpy once the queue is empty;
 * elsewhere it goes through staging memory: a write is over for its caller when its bytes are
 * there, for all work of a device goes through one VkQueue, in order. */
#include <string.h>

#include "apis/vulkan/backend/job.h"

/* What the device has copied before a new job could be made. */
#define BRIEF_COPY ((size_t)256 << 10)

static bool maps_directly(const kn_vk_device *device, const kn_vk_buffer *buffer)
{
    const VkPhysicalDeviceType type = device->physical->properties.deviceType;
    return buffer->memory.mapped != NULL && buffer->memory.coherent &&
           (type == VK_PHYSICAL_DEVICE_TYPE_CPU || type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU);
}

static void flush_staging(const kn_vk_job *job)
{
    const kn_vk_device *device = job->queue->device;
    const VkMappedMemoryRange range = {VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE, NULL,
                                       job->staging.memory.handle, job->staging.memory.offset,
                                       job->staging.memory.size};
    if (!job->staging.memory.coherent) {
        (void)device->fn.vkFlushMappedMemoryRanges(device->handle, 1, &range);
    }
}

/* A job with `size` bytes of staging memory. */
static kiln_status begin_staged(kn_vk_queue *queue, size_t size, kn_vk_job **out_job,
                                kiln_diag *diag)
{
    kiln_status status = kn_vk_job_begin(queue, out_job, diag);
    if (status == KILN_OK) {
        status = kn_vk_job_stage(*out_job, size, diag);
        if (status != KILN_OK) {
            kn_vk_job_abandon(*out_job);
        }
    }
    return status;
}

kiln_status kn_vk_queue_write(void *handle, void *to, size_t offset, const void *data, size_t size,
                              void **out_event, kiln_diag *diag)
{
    kn_vk_queue *queue = (kn_vk_queue *)handle;
    const kn_vk_buffer *buffer = (const kn_vk_buffer *)to;
    if (out_event == NULL && maps_directly(queue->device, buffer)) {
        kiln_status status = kn_vk_queue_drain(queue, diag);
        if (status == KILN_OK) {
            memcpy((char *)buffer->memory.mapped + offset, data, size);
        }
        return status;
    }
    kn_vk_job *job = NULL;
    kiln_status status = out_event == NULL ? kn_vk_queue_make_room(queue, size, diag) : KILN_OK;
    if (status == KILN_OK) {
        status = begin_staged(queue, size, &job, diag);
    }
    if (status != KILN_OK) {
        return status;
    }
    job->brief = out_event == NULL && size <= BRIEF_COPY;
    memcpy(job->staging.memory.mapped, data, size);
    flush_staging(job);
    const VkBufferCopy copy = {0, offset, size};
    queue->device->fn.vkCmdCopyBuffer(job->commands, job->staging.handle, buffer->handle, 1, &copy);
    return kn_vk_job_submit(job, out_event, diag);
}

kiln_status kn_vk_queue_read(void *handle, void *from, size_t offset, void *data, size_t size,
                             void **out_event, kiln_diag *diag)
{
    kn_vk_queue *queue = (kn_vk_queue *)handle;
    const kn_vk_buffer *buffer = (const kn_vk_buffer *)from;
    if (out_event == NULL && maps_directly(queue->device, buffer)) {
        kiln_status status = kn_vk_queue_drain(queue, diag);
        if (status == KILN_OK) {
            memcpy(data, (const char *)buffer->memory.mapped + offset, size);
        }
        return status;
    }
    kn_vk_job *job = NULL;
    kiln_status status = begin_staged(queue, size, &job, diag);
    if (status != KILN_OK) {
        return status;
    }
    const VkBufferCopy copy = {offset, 0, size};
    const VkMemoryBarrier to_host = {VK_STRUCTURE_TYPE_MEMORY_BARRIER, NULL,
                                     VK_ACCESS_TRANSFER_WRITE_BIT, VK_ACCESS_HOST_READ_BIT};
    queue->device->fn.vkCmdCopyBuffer(job->commands, buffer->handle, job->staging.handle, 1, &copy);
    queue->device->fn.vkCmdPipelineBarrier(job->commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                                           VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &to_host, 0, NULL, 0,
                                           NULL);
    job->read_to = data;
    job->read_size = size;
    void *own = NULL; /* for any other thread that waits for this queue, the answer is this job's */
    status = kn_vk_job_submit(job, out_event != NULL ? out_event : &own, diag);
    if (own != NULL) {
        status = kn_vk_event_wait(queue->device, own, diag);
        kn_vk_event_destroy(queue->device, own);
    }
    return status;
}

/* vkCmdFillBuffer repeats one word over whole words; anything else is written out in staging
 * memory. */
kiln_status kn_vk_queue_fill(void *handle, void *to, size_t offset, const void *pattern,
                             size_t pattern_size, size_t size, kiln_diag *diag)
{
    kn_vk_queue *queue = (kn_vk_queue *)handle;
    const kn_vk_buffer *buffer = (const kn_vk_buffer *)to;
    const bool in_words = pattern_size <= 4 && offset % 4 == 0 && size % 4 == 0;
    kn_vk_job *job = NULL;
    kiln_status status = in_words ? KILN_OK : kn_vk_queue_make_room(queue, size, diag);
    if (status == KILN_OK) {
        status =
            in_words ? kn_vk_job_begin(queue, &job, diag) : begin_staged(queue, size, &job, diag);
    }
    if (status != KILN_OK) {
        return status;
    }
    if (in_words) {
        uint32_t word = 0;
        for (size_t i = 0; i < 4; i += pattern_size) {
            memcpy((char *)&word + i, pattern, pattern_size);
        }
        queue->device->fn.vkCmdFillBuffer(job->commands, buffer->handle, offset, size, word);
        return kn_vk_job_submit(job, NULL, diag);
    }
    for (size_t i = 0; i < size; i += pattern_size) {
        memcpy((char *)job->staging.memory.mapped + i, pattern, pattern_size);
    }
    flush_staging(job);
    const VkBufferCopy copy = {0, offset, size};
    queue->device->fn.vkCmdCopyBuffer(job->commands, job->staging.handle, buffer->handle, 1, &copy);
    return kn_vk_job_submit(job, NULL, diag);
}

kiln_status kn_vk_queue_copy(void *handle, void *from, size_t from_offset, void *to,
                             size_t to_offset, size_t size, kiln_diag *diag)
{
    kn_vk_queue *queue = (kn_vk_queue *)handle;
    kn_vk_job *job = NULL;
    kiln_status status = kn_vk_job_begin(queue, &job, diag);
    if (status != KILN_OK) {
        return status;
    }
    const VkBufferCopy copy = {from_offset, to_offset, size};
    queue->device->fn.vkCmdCopyBuffer(job->commands, ((const kn_vk_buffer *)from)->handle,
                                      ((const kn_vk_buffer *)to)->handle, 1, &copy);
    return kn_vk_job_submit(job, NULL, diag);
}
