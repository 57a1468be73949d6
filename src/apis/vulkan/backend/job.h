/* A job: one submission of a queue with everything it needs until the device is done with it. Jobs
 * are recycled, so a warm queue creates nothing per submission; a queue begins with two of them.
 *
 *     kn_vk_job_begin(queue, &job, diag);      locks the queue, starts the command buffer
 *     ... record into job->commands ...
 *     kn_vk_job_submit(job, out_event, diag);  submits, unlocks; out_event NULL: no one waits
 *     (or kn_vk_job_abandon(job) after a failure while recording)
 *
 * Every command buffer begins with a full barrier, which makes a queue in-order. */
#ifndef KILN_VULKAN_BACKEND_JOB_H
#define KILN_VULKAN_BACKEND_JOB_H

#include "apis/vulkan/backend/instance.h"

typedef struct kn_vk_queue kn_vk_queue;

typedef struct kn_vk_job {
    struct kn_vk_job *next;
    kn_vk_queue *queue;
    VkCommandBuffer commands;
    VkFence fence;
    VkDescriptorPool descriptors; /* these two by kn_vk_job_equip: copies need neither */
    VkQueryPool times;            /* two time stamps */
    bool timed;
    bool brief; /* a small copy for nobody who waits: over in a moment */
    bool used;  /* submitted before */
    bool done;
    kiln_status result; /* valid when done */
    unsigned int refs;  /* the queue while in flight, and the event */
    kn_vk_buffer staging;
    void *read_to; /* staged bytes go here when the job is done */
    size_t read_size;
} kn_vk_job;

struct kn_vk_queue {
    kn_vk_device *device;
    VkCommandPool pool;
    kn_mutex lock;
    kn_vk_job *flying, **flying_end; /* oldest first */
    kn_vk_job *idle;
    size_t staged;     /* bytes of staging memory that jobs hold */
    unsigned int refs; /* the owner, and jobs whose events outlive it */
};

kiln_status kn_vk_job_begin(kn_vk_queue *queue, kn_vk_job **out_job, kiln_diag *diag);
kiln_status kn_vk_job_submit(kn_vk_job *job, void **out_event, kiln_diag *diag);
void kn_vk_job_abandon(kn_vk_job *job);
/* Waits for all jobs in flight. */
kiln_status kn_vk_queue_drain(kn_vk_queue *queue, kiln_diag *diag);
/* Gives the job `size` bytes of mapped staging memory. */
kiln_status kn_vk_job_stage(kn_vk_job *job, size_t size, kiln_diag *diag);
/* Before staging `size` bytes that nobody will wait for: waits for what is in flight if too much
 * staging memory would pile up. The queue is not locked. */
kiln_status kn_vk_queue_make_room(kn_vk_queue *queue, size_t size, kiln_diag *diag);
/* Gives the job of a launch its descriptor pool and, with `timed` and where the device has them,
 * its time stamps. */
kiln_status kn_vk_job_equip(kn_vk_job *job, bool timed, kiln_diag *diag);

#endif
