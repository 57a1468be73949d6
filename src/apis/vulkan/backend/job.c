/* Submissions: begin, submit, retire, recycle; and the events that stand for them. */
#include "apis/vulkan/backend/job.h"

#include <stdlib.h>
#include <string.h>

#include "base/diag.h"

/* Jobs that a new queue has: making one takes 0.25 ms on NVIDIA, which a first launch would feel.
 */
#define FIRST_JOBS 2

/* Staging memory that may wait for the device on behalf of calls that have returned. */
#define STAGED_MAX ((size_t)8 << 20)

static void destroy_job(kn_vk_job *job)
{
    const kn_vk_device *device = job->queue->device;
    device->fn.vkDestroyFence(device->handle, job->fence, NULL);
    device->fn.vkDestroyDescriptorPool(device->handle, job->descriptors, NULL);
    device->fn.vkDestroyQueryPool(device->handle, job->times, NULL);
    free(job);
}

static kiln_status create_job(kn_vk_queue *queue, kn_vk_job **out_job, kiln_diag *diag)
{
    const kn_vk_device *device = queue->device;
    kn_vk_job *job = (kn_vk_job *)calloc(1, sizeof(*job));
    if (job == NULL) {
        return kn_no_memory(diag, "submission");
    }
    job->queue = queue;
    const VkCommandBufferAllocateInfo commands = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                                  NULL, queue->pool,
                                                  VK_COMMAND_BUFFER_LEVEL_PRIMARY, 1};
    const VkFenceCreateInfo fence = {VK_STRUCTURE_TYPE_FENCE_CREATE_INFO, NULL, 0};
    const char *what = "vkAllocateCommandBuffers";
    VkResult result =
        device->fn.vkAllocateCommandBuffers(device->handle, &commands, &job->commands);
    if (result == VK_SUCCESS) {
        what = "vkCreateFence";
        result = device->fn.vkCreateFence(device->handle, &fence, NULL, &job->fence);
    }
    if (result != VK_SUCCESS) {
        destroy_job(job); /* its command buffer goes with the pool */
        return kn_vk_fail(result, what, diag);
    }
    *out_job = job;
    return KILN_OK;
}

/* The queue's lock is held. The last reference makes the job idle again. */
static void drop_job(kn_vk_job *job)
{
    if (--job->refs > 0) {
        return;
    }
    job->queue->staged -= job->staging.size;
    kn_vk_buffer_deinit(job->queue->device, &job->staging);
    job->next = job->queue->idle;
    job->queue->idle = job;
}

/* The queue's lock is held; the device is done with the job. */
static void retire_job(kn_vk_job *job, kiln_status result)
{
    kn_vk_queue *queue = job->queue;
    const kn_vk_device *device = queue->device;
    job->done = true;
    job->result = result;
    if (job->read_to != NULL && result == KILN_OK) {
        const VkMappedMemoryRange range = {VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE, NULL,
                                           job->staging.memory.handle, job->staging.memory.offset,
                                           job->staging.memory.size};
        if (!job->staging.memory.coherent) {
            (void)device->fn.vkInvalidateMappedMemoryRanges(device->handle, 1, &range);
        }
        memcpy(job->read_to, job->staging.memory.mapped, job->read_size);
    }
    job->read_to = NULL;
    queue->flying = job->next;
    if (queue->flying == NULL) {
        queue->flying_end = &queue->flying;
    }
    drop_job(job);
}

/* The queue's lock is held, but let go while the device is waited for: others may launch and ask.
 */
static VkResult wait_for(kn_vk_job *job)
{
    kn_vk_queue *queue = job->queue;
    const kn_vk_device *device = queue->device;
    job->refs++; /* so that no one starts it again meanwhile */
    kn_mutex_unlock(&queue->lock);
    VkResult result =
        device->fn.vkWaitForFences(device->handle, 1, &job->fence, VK_TRUE, UINT64_MAX);
    kn_mutex_lock(&queue->lock);
    return result;
}

/* The queue's lock is held. Retires what is finished, oldest first; with `until`, to which the
 * caller has a reference, waits for jobs up to that one. */
static kiln_status collect_jobs(kn_vk_queue *queue, const kn_vk_job *until, kiln_diag *diag)
{
    const kn_vk_device *device = queue->device;
    kiln_status first = KILN_OK;
    while (queue->flying != NULL) {
        kn_vk_job *job = queue->flying;
        const bool wait = until != NULL && !until->done;
        VkResult result =
            wait ? wait_for(job) : device->fn.vkGetFenceStatus(device->handle, job->fence);
        if (result == VK_NOT_READY) {
            break;
        }
        kiln_status status = result == VK_SUCCESS ? KILN_OK
                                                  : kn_vk_fail(result, "waiting for the device",
                                                               first == KILN_OK ? diag : NULL);
        first = first == KILN_OK ? status : first;
        if (!job->done) { /* else another thread was there while we waited */
            retire_job(job, status);
        }
        if (wait) {
            drop_job(job);
        }
    }
    return first;
}

/* The queue's lock is held. Waits for everything that is in flight now. */
static kiln_status collect_all(kn_vk_queue *queue, kiln_diag *diag)
{
    kn_vk_job *last = queue->flying;
    if (last == NULL) {
        return KILN_OK;
    }
    while (last->next != NULL) {
        last = last->next;
    }
    last->refs++;
    kiln_status status = collect_jobs(queue, last, diag);
    drop_job(last);
    return status;
}

/* The queue's lock is held. A job that is used no more, or a new one. */
static kiln_status take_job(kn_vk_queue *queue, kn_vk_job **out_job, kiln_diag *diag)
{
    kiln_status status = collect_jobs(queue, NULL, diag);
    kn_vk_job *oldest = queue->flying;
    if (status == KILN_OK && queue->idle == NULL && oldest != NULL && oldest->brief) {
        oldest->refs++;
        status = collect_jobs(queue, oldest, diag); /* sooner than another one is made */
        drop_job(oldest);
    }
    if (status != KILN_OK) {
        return status;
    }
    if (queue->idle == NULL) {
        return create_job(queue, out_job, diag);
    }
    *out_job = queue->idle;
    queue->idle = (*out_job)->next;
    return KILN_OK;
}

static VkResult reset_job(const kn_vk_device *device, kn_vk_job *job)
{
    job->next = NULL;
    job->done = false;
    job->timed = false;
    job->brief = false;
    job->refs = 1;
    job->result = KILN_OK;
    VkResult result = VK_SUCCESS;
    if (job->used) {
        result = device->fn.vkResetFences(device->handle, 1, &job->fence);
    }
    if (result == VK_SUCCESS && job->used) {
        result = device->fn.vkResetCommandBuffer(job->commands, 0);
    }
    job->used = true;
    return result;
}

kiln_status kn_vk_job_begin(kn_vk_queue *queue, kn_vk_job **out_job, kiln_diag *diag)
{
    const kn_vk_device *device = queue->device;
    kn_vk_job *job = NULL;
    *out_job = NULL;
    kn_mutex_lock(&queue->lock);
    kiln_status status = take_job(queue, &job, diag);
    if (status != KILN_OK || job == NULL) {
        kn_mutex_unlock(&queue->lock);
        return status;
    }
    const VkCommandBufferBeginInfo begin = {VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, NULL,
                                            VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT, NULL};
    VkResult result = reset_job(device, job);
    if (result == VK_SUCCESS) {
        result = device->fn.vkBeginCommandBuffer(job->commands, &begin);
    }
    if (result != VK_SUCCESS) {
        drop_job(job);
        kn_mutex_unlock(&queue->lock);
        return kn_vk_fail(result, "vkBeginCommandBuffer", diag);
    }
    const VkMemoryBarrier barrier = {VK_STRUCTURE_TYPE_MEMORY_BARRIER, NULL,
                                     VK_ACCESS_MEMORY_WRITE_BIT,
                                     VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT};
    device->fn.vkCmdPipelineBarrier(job->commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                                    VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 1, &barrier, 0, NULL, 0,
                                    NULL);
    *out_job = job;
    return KILN_OK;
}

void kn_vk_job_abandon(kn_vk_job *job)
{
    kn_vk_queue *queue = job->queue;
    job->read_to = NULL;
    (void)queue->device->fn.vkEndCommandBuffer(job->commands);
    drop_job(job);
    kn_mutex_unlock(&queue->lock);
}

kiln_status kn_vk_job_submit(kn_vk_job *job, void **out_event, kiln_diag *diag)
{
    kn_vk_queue *queue = job->queue;
    kn_vk_device *device = queue->device;
    VkResult result = device->fn.vkEndCommandBuffer(job->commands);
    if (result == VK_SUCCESS) {
        const VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                                     .commandBufferCount = 1,
                                     .pCommandBuffers = &job->commands};
        kn_mutex_lock(&device->queue_lock);
        result = device->fn.vkQueueSubmit(device->queue, 1, &submit, job->fence);
        kn_mutex_unlock(&device->queue_lock);
    }
    if (result != VK_SUCCESS) {
        job->read_to = NULL;
        drop_job(job);
        kn_mutex_unlock(&queue->lock);
        return kn_vk_fail(result, "vkQueueSubmit", diag);
    }
    *queue->flying_end = job;
    queue->flying_end = &job->next;
    if (out_event != NULL) {
        job->refs++;
        queue->refs++;
        *out_event = job;
    }
    kn_mutex_unlock(&queue->lock);
    return KILN_OK;
}

kiln_status kn_vk_job_stage(kn_vk_job *job, size_t size, kiln_diag *diag)
{
    kiln_status status = kn_vk_buffer_init(
        job->queue->device, size, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT, &job->staging, diag);
    if (status == KILN_OK && job->staging.memory.mapped == NULL) {
        kn_vk_buffer_deinit(job->queue->device, &job->staging);
        status = kiln_diag_set(diag, KILN_E_NOMEM, NULL, "staging memory", "it cannot be mapped");
    }
    job->queue->staged += job->staging.size;
    return status;
}

kiln_status kn_vk_queue_make_room(kn_vk_queue *queue, size_t size, kiln_diag *diag)
{
    kn_mutex_lock(&queue->lock);
    const bool full = queue->staged > 0 && (size > STAGED_MAX || queue->staged > STAGED_MAX - size);
    kiln_status status = full ? collect_all(queue, diag) : KILN_OK;
    kn_mutex_unlock(&queue->lock);
    return status;
}

kiln_status kn_vk_job_equip(kn_vk_job *job, bool timed, kiln_diag *diag)
{
    const kn_vk_device *device = job->queue->device;
    const VkDescriptorPoolSize sizes[] = {
        {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, KN_SPIRV_MAX_BINDINGS},
        {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, KN_SPIRV_MAX_BINDINGS},
    };
    const VkDescriptorPoolCreateInfo pool = {
        VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, NULL, 0, 1, 2, sizes};
    const VkQueryPoolCreateInfo times = {
        VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO, NULL, 0, VK_QUERY_TYPE_TIMESTAMP, 2, 0};
    VkResult result = VK_SUCCESS;
    job->timed = timed && device->physical->timestamp_bits > 0;
    if (job->descriptors == VK_NULL_HANDLE) {
        result = device->fn.vkCreateDescriptorPool(device->handle, &pool, NULL, &job->descriptors);
    }
    if (result != VK_SUCCESS) {
        return kn_vk_fail(result, "vkCreateDescriptorPool", diag);
    }
    if (job->timed && job->times == VK_NULL_HANDLE) {
        result = device->fn.vkCreateQueryPool(device->handle, &times, NULL, &job->times);
    }
    return result == VK_SUCCESS ? KILN_OK : kn_vk_fail(result, "vkCreateQueryPool", diag);
}

kiln_status kn_vk_queue_drain(kn_vk_queue *queue, kiln_diag *diag)
{
    kn_mutex_lock(&queue->lock);
    kiln_status status = collect_all(queue, diag);
    kn_mutex_unlock(&queue->lock);
    return status;
}

/* --- queues ----------------------------------------------------------------------------------- */

kiln_status kn_vk_queue_create(void *opaque, void **out_queue, kiln_diag *diag)
{
    kn_vk_device *device = (kn_vk_device *)opaque;
    *out_queue = NULL;
    kn_vk_queue *queue = (kn_vk_queue *)calloc(1, sizeof(*queue));
    if (queue == NULL) {
        return kn_no_memory(diag, "queue");
    }
    queue->device = device;
    queue->flying_end = &queue->flying;
    queue->refs = 1;
    const VkCommandPoolCreateInfo info = {VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, NULL,
                                          VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                          device->physical->family};
    VkResult result = device->fn.vkCreateCommandPool(device->handle, &info, NULL, &queue->pool);
    if (result != VK_SUCCESS) {
        free(queue);
        return kn_vk_fail(result, "vkCreateCommandPool", diag);
    }
    kn_mutex_init(&queue->lock);
    kiln_status status = KILN_OK;
    for (int i = 0; status == KILN_OK && i < FIRST_JOBS; i++) {
        kn_vk_job *job = NULL;
        status = create_job(queue, &job, diag);
        if (job != NULL) {
            job->next = queue->idle;
            queue->idle = job;
        }
    }
    if (status != KILN_OK) {
        kn_vk_queue_destroy(opaque, queue);
        return status;
    }
    *out_queue = queue;
    return KILN_OK;
}

/* The queue's lock is held, and is gone when the last reference is. */
static void drop_queue(kn_vk_queue *queue)
{
    const bool last = --queue->refs == 0;
    kn_mutex_unlock(&queue->lock);
    if (!last) {
        return;
    }
    while (queue->idle != NULL) {
        kn_vk_job *job = queue->idle;
        queue->idle = job->next;
        destroy_job(job);
    }
    queue->device->fn.vkDestroyCommandPool(queue->device->handle, queue->pool, NULL);
    kn_mutex_deinit(&queue->lock);
    free(queue);
}

void kn_vk_queue_destroy(void *device, void *handle)
{
    kn_vk_queue *queue = (kn_vk_queue *)handle;
    (void)device;
    if (queue == NULL) {
        return;
    }
    kn_mutex_lock(&queue->lock);
    (void)collect_all(queue, NULL);
    drop_queue(queue);
}

kiln_status kn_vk_queue_finish(void *queue, kiln_diag *diag)
{
    return kn_vk_queue_drain((kn_vk_queue *)queue, diag);
}

/* --- events ----------------------------------------------------------------------------------- */

bool kn_vk_event_done(void *device, void *event)
{
    kn_vk_job *job = (kn_vk_job *)event;
    (void)device;
    kn_mutex_lock(&job->queue->lock);
    if (!job->done) {
        (void)collect_jobs(job->queue, NULL, NULL);
    }
    const bool done = job->done;
    kn_mutex_unlock(&job->queue->lock);
    return done;
}

kiln_status kn_vk_event_wait(void *device, void *event, kiln_diag *diag)
{
    kn_vk_job *job = (kn_vk_job *)event;
    (void)device;
    kiln_status waited = KILN_OK;
    kn_mutex_lock(&job->queue->lock);
    if (!job->done) {
        waited = collect_jobs(job->queue, job, diag);
    }
    const kiln_status status = job->result;
    kn_mutex_unlock(&job->queue->lock);
    if (status != KILN_OK && waited == KILN_OK) { /* another caller got the reason */
        return kiln_diag_set(diag, status, NULL, "waiting for the device",
                             "it failed before this was done");
    }
    return status;
}

kiln_status kn_vk_event_elapsed(void *opaque, void *event, uint64_t *out_ns, kiln_diag *diag)
{
    const kn_vk_device *device = (const kn_vk_device *)opaque;
    const kn_vk_job *job = (const kn_vk_job *)event;
    uint64_t stamps[2] = {0, 0};
    *out_ns = 0;
    kiln_status status = kn_vk_event_wait(opaque, event, diag);
    if (status != KILN_OK) {
        return status;
    }
    if (!job->timed) {
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, NULL, "event",
                             "it was not timed, or the device has no time stamps");
    }
    VkResult result = device->fn.vkGetQueryPoolResults(
        device->handle, job->times, 0, 2, sizeof(stamps), stamps, sizeof(stamps[0]),
        VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
    if (result != VK_SUCCESS) {
        return kn_vk_fail(result, "vkGetQueryPoolResults", diag);
    }
    const uint32_t bits = device->physical->timestamp_bits;
    const uint64_t mask = bits >= 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
    const double ns = (double)((stamps[1] - stamps[0]) & mask) *
                      (double)device->physical->properties.limits.timestampPeriod;
    if (!(ns >= 0 && ns < 0x1p63)) {
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, "update the Vulkan driver", "event",
                             "the driver's time stamps are invalid");
    }
    *out_ns = (uint64_t)ns;
    return KILN_OK;
}

void kn_vk_event_destroy(void *device, void *event)
{
    kn_vk_job *job = (kn_vk_job *)event;
    (void)device;
    if (job == NULL) {
        return;
    }
    kn_vk_queue *queue = job->queue;
    kn_mutex_lock(&queue->lock);
    drop_job(job);
    drop_queue(queue);
}
