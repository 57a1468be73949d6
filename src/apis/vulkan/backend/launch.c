/* Launches: buffers go to the bindings of set 0 in ascending order, values to the push constants in
 * order of their offsets; work-group memory given at launch (KILN_ARG_LOCAL) is not a GLSL notion
 * and is passed over: a shader declares its shared arrays itself. */
#include <string.h>

#include "apis/vulkan/backend/job.h"

enum { MAX_PUSH_BYTES = 4096 + 64 };

typedef struct bound_args {
    VkDescriptorBufferInfo buffers[KN_SPIRV_MAX_BINDINGS];
    size_t buffer_count;
    unsigned char push[MAX_PUSH_BYTES];
    size_t value_count;
} bound_args;

static kiln_status bind_buffer(const kn_vk_device *device, const kn_spirv *module,
                               const kiln_sys_launch *launch, size_t index, bound_args *bound,
                               kiln_diag *diag)
{
    const kiln_sys_arg *arg = &launch->args[index];
    const VkPhysicalDeviceLimits *limits = &device->physical->properties.limits;
    if (bound->buffer_count == module->binding_count) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, launch->entry,
                             "argument %zu: the shader has %zu buffers, more were given", index,
                             module->binding_count);
    }
    const bool uniform = module->bindings[bound->buffer_count].uniform;
    const VkDeviceSize alignment =
        uniform ? limits->minUniformBufferOffsetAlignment : limits->minStorageBufferOffsetAlignment;
    kiln_status status = kn_glsl_check_offset(launch, index, alignment, diag);
    if (status != KILN_OK) {
        return status;
    }
    /* No block is larger than the limit: what of a buffer lies beyond it is out of reach. */
    const bool whole = !uniform || arg->size <= limits->maxUniformBufferRange;
    bound->buffers[bound->buffer_count++] =
        (VkDescriptorBufferInfo){((const kn_vk_buffer *)arg->buffer)->handle, arg->offset,
                                 whole ? VK_WHOLE_SIZE : limits->maxUniformBufferRange};
    return KILN_OK;
}

static kiln_status bind_value(const kn_spirv *module, const kiln_sys_launch *launch, size_t index,
                              bound_args *bound, kiln_diag *diag)
{
    const kiln_sys_arg *arg = &launch->args[index];
    if (bound->value_count == module->member_count) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, launch->entry,
                             "argument %zu: the shader has %zu push constants, more were given",
                             index, module->member_count);
    }
    const kn_spirv_member *member = &module->members[bound->value_count++];
    kiln_status status =
        kn_glsl_check_value(launch, index, member->type, member->name, member->size, diag);
    if (status != KILN_OK) {
        return status;
    }
    memcpy(bound->push + member->offset, arg->value, arg->size);
    return KILN_OK;
}

static kiln_status bind_args(const kn_vk_device *device, const kn_spirv *module,
                             const kiln_sys_launch *launch, bound_args *bound, kiln_diag *diag)
{
    for (size_t i = 0; i < launch->arg_count; i++) {
        kiln_status status = KILN_OK;
        if (launch->args[i].kind == KILN_ARG_BUFFER) {
            status = bind_buffer(device, module, launch, i, bound, diag);
        } else if (launch->args[i].kind == KILN_ARG_VALUE) {
            status = bind_value(module, launch, i, bound, diag);
        }
        if (status != KILN_OK) {
            return status;
        }
    }
    if (bound->buffer_count != module->binding_count ||
        bound->value_count != module->member_count) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, launch->entry,
                             "the shader takes %zu buffers and %zu values; %zu and %zu were given",
                             module->binding_count, module->member_count, bound->buffer_count,
                             bound->value_count);
    }
    return KILN_OK;
}

static kiln_status write_descriptors(const kn_vk_job *job, const kn_vk_program *program,
                                     const bound_args *bound, VkDescriptorSet *out_set,
                                     kiln_diag *diag)
{
    const kn_vk_device *device = job->queue->device;
    const kn_spirv *module = &program->module;
    const VkDescriptorSetLayout layout = program->set_layout;
    const VkDescriptorSetAllocateInfo info = {VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO, NULL,
                                              job->descriptors, 1, &layout};
    VkWriteDescriptorSet writes[KN_SPIRV_MAX_BINDINGS];
    VkResult result = device->fn.vkResetDescriptorPool(device->handle, job->descriptors, 0);
    if (result == VK_SUCCESS) {
        result = device->fn.vkAllocateDescriptorSets(device->handle, &info, out_set);
    }
    if (result != VK_SUCCESS) {
        return kn_vk_fail(result, "vkAllocateDescriptorSets", diag);
    }
    for (size_t i = 0; i < bound->buffer_count; i++) {
        writes[i] = (VkWriteDescriptorSet){
            .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
            .dstSet = *out_set,
            .dstBinding = module->bindings[i].binding,
            .descriptorCount = 1,
            .descriptorType = module->bindings[i].uniform ? VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER
                                                          : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
            .pBufferInfo = &bound->buffers[i],
        };
    }
    device->fn.vkUpdateDescriptorSets(device->handle, (uint32_t)bound->buffer_count, writes, 0,
                                      NULL);
    return KILN_OK;
}

static void record_launch(kn_vk_job *job, const kn_vk_program *program,
                          const kn_vk_pipeline *pipeline, const bound_args *bound,
                          VkDescriptorSet set, const uint32_t groups[3])
{
    const struct kn_vk_device_fn *fn = &job->queue->device->fn;
    const VkPipelineLayout layout = program->layout;
    const uint32_t push_size = program->module.push_size;
    fn->vkCmdBindPipeline(job->commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline->handle);
    if (bound->buffer_count > 0) {
        fn->vkCmdBindDescriptorSets(job->commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1,
                                    &set, 0, NULL);
    }
    if (push_size > 0) {
        fn->vkCmdPushConstants(job->commands, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, push_size,
                               bound->push);
    }
    if (job->timed) {
        fn->vkCmdResetQueryPool(job->commands, job->times, 0, 2);
        fn->vkCmdWriteTimestamp(job->commands, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, job->times, 0);
    }
    fn->vkCmdDispatch(job->commands, groups[0], groups[1], groups[2]);
    if (job->timed) {
        fn->vkCmdWriteTimestamp(job->commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, job->times, 1);
    }
}

kiln_status kn_vk_queue_launch(void *handle, const kiln_sys_launch *launch, void **out_event,
                               kiln_diag *diag)
{
    kn_vk_queue *queue = (kn_vk_queue *)handle;
    kn_vk_program *program = (kn_vk_program *)launch->program;
    const kn_vk_pipeline *pipeline = NULL;
    bound_args bound = {.buffer_count = 0};
    uint32_t groups[3] = {0, 0, 0};
    kiln_status status = kn_vk_program_pipeline(program, launch->entry, launch->local,
                                                launch->global, &pipeline, diag);
    if (status == KILN_OK) {
        status = bind_args(queue->device, &program->module, launch, &bound, diag);
    }
    if (status == KILN_OK) {
        status = kn_glsl_count_groups(&queue->device->physical->groups, launch, pipeline->local,
                                      groups, diag);
    }
    if (status != KILN_OK) {
        return status;
    }
    kn_vk_job *job = NULL;
    VkDescriptorSet set = VK_NULL_HANDLE;
    status = kn_vk_job_begin(queue, &job, diag);
    if (status != KILN_OK) {
        return status;
    }
    status = kn_vk_job_equip(job, out_event != NULL, diag); /* times are asked of events */
    if (status == KILN_OK && bound.buffer_count > 0) {
        status = write_descriptors(job, program, &bound, &set, diag);
    }
    if (status != KILN_OK) {
        kn_vk_job_abandon(job);
        return status;
    }
    record_launch(job, program, pipeline, &bound, set, groups);
    return kn_vk_job_submit(job, out_event, diag);
}
