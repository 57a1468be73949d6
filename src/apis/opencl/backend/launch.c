/* Queues, launches and their timing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apis/opencl/backend/program.h"
#include "apis/opencl/backend/queue.h"
#include "apis/opencl/backend/status.h"
#include "base/diag.h"

/* Work-items in a group that kiln chooses. */
#define CHOSEN_GROUP 256u

kiln_status kn_opencl_queue_create(void *device, void **out_queue, kiln_diag *diag)
{
    const kn_opencl_device *dev = (const kn_opencl_device *)device;
    cl_int code = CL_SUCCESS;
    kn_opencl_queue *queue = calloc(1, sizeof(*queue));
    if (queue == NULL) {
        return kn_no_memory(diag, "creating an OpenCL queue");
    }
    queue->device = dev;
    queue->handle = dev->cl->api.clCreateCommandQueue(dev->context, dev->unit->device,
                                                      CL_QUEUE_PROFILING_ENABLE, &code);
    if (queue->handle == NULL) {
        free(queue);
        return kn_opencl_fail(diag, "creating an OpenCL queue", "clCreateCommandQueue", code);
    }
    *out_queue = queue;
    return KILN_OK;
}

void kn_opencl_queue_destroy(void *device, void *queue)
{
    kn_opencl_queue *q = (kn_opencl_queue *)queue;
    const kn_opencl_api *api = &((const kn_opencl_device *)device)->cl->api;
    if (q != NULL) {
        (void)api->clFinish(q->handle);
        (void)api->clReleaseCommandQueue(q->handle);
        free(q);
    }
}

kiln_status kn_opencl_queue_finish(void *queue, kiln_diag *diag)
{
    const kn_opencl_queue *q = (const kn_opencl_queue *)queue;
    cl_int code = q->device->cl->api.clFinish(q->handle);
    return code == CL_SUCCESS
               ? KILN_OK
               : kn_opencl_fail_run(diag, "waiting for an OpenCL queue", "clFinish", code);
}

kiln_status kn_opencl_queue_wait(void *queue, void *event, kiln_diag *diag)
{
    const kn_opencl_queue *q = (const kn_opencl_queue *)queue;
    const cl_event awaited = (cl_event)event;
    cl_int code = q->device->cl->api.clEnqueueBarrierWithWaitList(q->handle, 1, &awaited, NULL);
    return code == CL_SUCCESS ? KILN_OK
                              : kn_opencl_fail_run(diag, "ordering two OpenCL queues",
                                                   "clEnqueueBarrierWithWaitList", code);
}

/* --- arguments -------------------------------------------------------------------------------- */

/* A buffer with an offset is a sub-buffer; the enqueued command keeps it alive, so that it can be
 * let go right after. */
typedef struct sub_buffers {
    cl_mem *items;
    size_t count;
} sub_buffers;

static kiln_status sub_buffer(const kn_opencl_device *device, const kiln_sys_arg *arg,
                              sub_buffers *subs, cl_mem *out_memory, kiln_diag *diag)
{
    const kn_opencl_buffer *buffer = (const kn_opencl_buffer *)arg->buffer;
    uint32_t step = device->unit->offset_alignment;
    cl_int code = CL_SUCCESS;
    if (arg->offset >= buffer->size || (step > 1 && arg->offset % step != 0)) {
        return kiln_diag_set(diag, KILN_E_INVALID, "choose an offset on such a boundary",
                             "setting a buffer argument",
                             "offset %zu of %zu bytes; the device requires multiples of %u",
                             arg->offset, buffer->size, step);
    }
    cl_buffer_region region = {arg->offset, buffer->size - arg->offset};
    *out_memory = device->cl->api.clCreateSubBuffer(buffer->memory, CL_MEM_READ_WRITE,
                                                    CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    if (*out_memory == NULL) {
        return kn_opencl_fail(diag, "setting a buffer argument", "clCreateSubBuffer", code);
    }
    subs->items[subs->count++] = *out_memory;
    return KILN_OK;
}

static kiln_status set_arg(const kn_opencl_device *device, const kn_opencl_kernel *kernel,
                           cl_uint index, const kiln_sys_arg *arg, sub_buffers *subs,
                           kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    size_t size = arg->size;
    const void *value = arg->kind == KILN_ARG_LOCAL ? NULL : arg->value;
    cl_mem memory = NULL;
    if (arg->kind == KILN_ARG_BUFFER) {
        memory = ((const kn_opencl_buffer *)arg->buffer)->memory;
        if (arg->offset != 0) {
            status = sub_buffer(device, arg, subs, &memory, diag);
        }
        size = sizeof(cl_mem);
        value = &memory;
    }
    if (status != KILN_OK) {
        return status;
    }
    cl_int code = device->cl->api.clSetKernelArg(kernel->handle, index, size, value);
    if (code != CL_SUCCESS) {
        status = kn_opencl_fail(diag, "setting an argument", "clSetKernelArg", code);
        if (diag != NULL) {
            size_t at = strlen(diag->why);
            (void)snprintf(diag->why + at, sizeof(diag->why) - at, " for argument %u of %s", index,
                           kernel->name);
        }
    }
    return status;
}

/* --- shape ------------------------------------------------------------------------------------ */

static uint64_t largest_divisor(uint64_t number, uint64_t limit)
{
    uint64_t divisor = limit < number ? limit : number;
    while (divisor > 1 && number % divisor != 0) {
        divisor--;
    }
    return divisor > 0 ? divisor : 1;
}

/* PoCL compiles again for each local size, and left to itself it takes another one for almost each
 * global size. A few sizes for all grids keep what is captured useful. */
static void choose_local(const kn_opencl_device *device, const kn_opencl_kernel *kernel,
                         const kiln_sys_launch *launch, uint64_t *local)
{
    uint64_t room = kernel->max_group < CHOSEN_GROUP ? kernel->max_group : CHOSEN_GROUP;
    for (uint32_t i = 0; i < launch->dims; i++) {
        uint64_t limit = device->unit->info.max_group_dim[i];
        limit = limit == 0 || limit > room ? room : limit;
        local[i] = largest_divisor(launch->global[i], limit);
        room /= local[i];
    }
}

/* False: the driver is to choose. */
static bool settle_local(const kn_opencl_device *device, const kn_opencl_kernel *kernel,
                         const kiln_sys_launch *launch, uint64_t *local)
{
    for (uint32_t i = 0; i < 3; i++) {
        local[i] = i < launch->dims ? launch->local[i] : 1;
    }
    if (launch->local[0] != 0) {
        return true;
    }
    if (kernel->fixed[0] != 0) {
        for (int i = 0; i < 3; i++) {
            local[i] = kernel->fixed[i];
        }
        return true;
    }
    if (device->unit->is_pocl) {
        choose_local(device, kernel, launch, local);
        return true;
    }
    return false;
}

static cl_int enqueue_kernel(const kn_opencl_queue *queue, const kn_opencl_kernel *kernel,
                             const kiln_sys_launch *launch, const uint64_t *local,
                             cl_event *out_event)
{
    size_t globals[3], locals[3], offsets[3];
    bool moved = false;
    for (uint32_t i = 0; i < 3; i++) {
        globals[i] = (size_t)launch->global[i];
        locals[i] = local != NULL ? (size_t)local[i] : 0;
        offsets[i] = (size_t)launch->offset[i];
        moved = moved || (i < launch->dims && offsets[i] != 0);
    }
    return queue->device->cl->api.clEnqueueNDRangeKernel(
        queue->handle, kernel->handle, launch->dims, moved ? offsets : NULL, globals,
        local != NULL ? locals : NULL, 0, NULL, out_event);
}

static kiln_status explain_failure(const kn_opencl_queue *queue, const kn_opencl_kernel *kernel,
                                   const kiln_sys_launch *launch, cl_int code, kiln_diag *diag)
{
    kiln_status status =
        kn_opencl_fail_run(diag, "launching an OpenCL kernel", "clEnqueueNDRangeKernel", code);
    if (code == CL_OUT_OF_RESOURCES &&
        queue->device->cl->api.clFinish(queue->handle) == CL_SUCCESS) {
        /* Not for an earlier kernel's fault: it is this launch that needs too much. */
        status =
            kiln_diag_set(diag, KILN_E_INVALID, "use smaller groups, or fewer registers",
                          "launching an OpenCL kernel",
                          "clEnqueueNDRangeKernel returned CL_OUT_OF_RESOURCES (%d)", (int)code);
        kiln_diag_set_vendor_code(diag, code);
    }
    if (diag != NULL) {
        size_t at = strlen(diag->why);
        (void)snprintf(diag->why + at, sizeof(diag->why) - at,
                       " for %s, global %llu x %llu x %llu, local %llu x %llu x %llu (at most %zu "
                       "together)",
                       kernel->name, (unsigned long long)launch->global[0],
                       (unsigned long long)launch->global[1], (unsigned long long)launch->global[2],
                       (unsigned long long)launch->local[0], (unsigned long long)launch->local[1],
                       (unsigned long long)launch->local[2], kernel->max_group);
    }
    return status;
}

/* The kernel's lock is held. */
static kiln_status launch_locked(const kn_opencl_queue *queue, kn_opencl_program *program,
                                 kn_opencl_kernel *kernel, const kiln_sys_launch *launch,
                                 sub_buffers *subs, void **out_event, kiln_diag *diag)
{
    const kn_opencl_api *api = &queue->device->cl->api;
    uint64_t local[3];
    kiln_status status = KILN_OK;
    for (size_t i = 0; i < launch->arg_count && status == KILN_OK; i++) {
        status = set_arg(queue->device, kernel, (cl_uint)i, &launch->args[i], subs, diag);
    }
    if (status != KILN_OK) {
        return status;
    }
    bool chosen = settle_local(queue->device, kernel, launch, local);
    kn_opencl_shape shape = kn_opencl_shape_of(kernel->name, launch->global, local, launch->offset);
    bool watch = chosen && kn_opencl_capture_wants(&program->capture, &shape);
    if (watch) { /* PoCL compiles it now */
        status = kn_pocl_check_linker(queue->device->unit->takes_linker, diag);
        if (status != KILN_OK) {
            return status;
        }
    }
    cl_event event = NULL;
    cl_int code = enqueue_kernel(queue, kernel, launch, chosen ? local : NULL,
                                 watch || out_event != NULL ? &event : NULL);
    if (code != CL_SUCCESS) {
        return explain_failure(queue, kernel, launch, code, diag);
    }
    if (watch) {
        kn_opencl_capture_add(&program->capture, api, &shape, event);
    }
    if (out_event != NULL) {
        (void)api->clFlush(queue->handle);
        *out_event = event;
    } else if (event != NULL) {
        (void)api->clReleaseEvent(event);
    }
    return KILN_OK;
}

/* Drivers answer with the code for a lost device when this is too much, and PoCL aborts. */
static kiln_status check_local(const kn_opencl_queue *queue, const kn_opencl_kernel *kernel,
                               const kiln_sys_launch *launch, kiln_diag *diag)
{
    const uint64_t limit = queue->device->unit->info.local_bytes;
    uint64_t bytes = kernel->fixed_local;
    for (size_t i = 0; i < launch->arg_count; i++) {
        const size_t more = launch->args[i].kind == KILN_ARG_LOCAL ? launch->args[i].size : 0;
        bytes = more <= UINT64_MAX - bytes ? bytes + more : UINT64_MAX;
    }
    if (limit == 0 || bytes <= limit) {
        return KILN_OK;
    }
    return kiln_diag_set(diag, KILN_E_INVALID, "use less of it", "launching an OpenCL kernel",
                         "%s takes %llu bytes of work-group memory; the device has %llu",
                         kernel->name, (unsigned long long)bytes, (unsigned long long)limit);
}

static kiln_status check_launch(const kn_opencl_program *program, const kiln_sys_launch *launch,
                                kn_opencl_kernel **out_kernel, kiln_diag *diag)
{
    kn_opencl_kernel *kernel = kn_opencl_kernel_find(&program->kernels, launch->entry);
    *out_kernel = kernel;
    if (kernel == NULL) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, "launching an OpenCL kernel",
                             "the program has no kernel '%s'", launch->entry);
    }
    if (launch->arg_count != kernel->param_count) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, "launching an OpenCL kernel",
                             "%s takes %zu arguments, not %zu", kernel->name, kernel->param_count,
                             launch->arg_count);
    }
    if (launch->shared_bytes != 0) {
        return kiln_diag_set(diag, KILN_E_INVALID, "give the kernel a __local argument",
                             "launching an OpenCL kernel",
                             "OpenCL has no work-group memory outside the arguments");
    }
    return KILN_OK;
}

kiln_status kn_opencl_queue_launch(void *queue, const kiln_sys_launch *launch, void **out_event,
                                   kiln_diag *diag)
{
    const kn_opencl_queue *q = (const kn_opencl_queue *)queue;
    const kn_opencl_api *api = &q->device->cl->api;
    kn_opencl_program *program = (kn_opencl_program *)launch->program;
    kn_opencl_kernel *kernel = NULL;
    sub_buffers subs = {0};
    kiln_status status = check_launch(program, launch, &kernel, diag);
    if (status == KILN_OK) {
        status = check_local(q, kernel, launch, diag);
    }
    if (status != KILN_OK) {
        return status;
    }
    for (size_t i = 0; i < launch->arg_count; i++) {
        bool moved = launch->args[i].kind == KILN_ARG_BUFFER && launch->args[i].offset != 0;
        subs.count += moved ? 1 : 0;
    }
    if (subs.count > 0) {
        subs.items = calloc(subs.count, sizeof(cl_mem));
        if (subs.items == NULL) {
            return kn_no_memory(diag, "launching an OpenCL kernel");
        }
        subs.count = 0;
    }
    kn_mutex_lock(&kernel->lock);
    status = launch_locked(q, program, kernel, launch, &subs, out_event, diag);
    kn_mutex_unlock(&kernel->lock);
    for (size_t i = 0; i < subs.count; i++) {
        (void)api->clReleaseMemObject(subs.items[i]);
    }
    free(subs.items);
    return status;
}

/* --- events ----------------------------------------------------------------------------------- */

bool kn_opencl_event_done(void *device, void *event)
{
    const kn_opencl_api *api = &((const kn_opencl_device *)device)->cl->api;
    cl_int state = CL_QUEUED;
    cl_int code = api->clGetEventInfo((cl_event)event, CL_EVENT_COMMAND_EXECUTION_STATUS,
                                      sizeof(state), &state, NULL);
    return code != CL_SUCCESS || state <= CL_COMPLETE; /* negative: it failed */
}

kiln_status kn_opencl_event_wait(void *device, void *event, kiln_diag *diag)
{
    const kn_opencl_api *api = &((const kn_opencl_device *)device)->cl->api;
    cl_event handle = (cl_event)event;
    cl_int code = api->clWaitForEvents(1, &handle);
    return code == CL_SUCCESS
               ? KILN_OK
               : kn_opencl_fail_run(diag, "waiting for a launch", "clWaitForEvents", code);
}

kiln_status kn_opencl_event_elapsed(void *device, void *event, uint64_t *out_ns, kiln_diag *diag)
{
    const kn_opencl_api *api = &((const kn_opencl_device *)device)->cl->api;
    cl_ulong start = 0, end = 0;
    kiln_status status = kn_opencl_event_wait(device, event, diag);
    if (status != KILN_OK) {
        return status;
    }
    cl_int code = api->clGetEventProfilingInfo((cl_event)event, CL_PROFILING_COMMAND_START,
                                               sizeof(start), &start, NULL);
    if (code == CL_SUCCESS) {
        code = api->clGetEventProfilingInfo((cl_event)event, CL_PROFILING_COMMAND_END, sizeof(end),
                                            &end, NULL);
    }
    if (code != CL_SUCCESS) {
        return kn_opencl_fail(diag, "timing a launch", "clGetEventProfilingInfo", code);
    }
    *out_ns = end > start ? end - start : 0;
    return KILN_OK;
}

void kn_opencl_event_destroy(void *device, void *event)
{
    if (event != NULL) {
        (void)((const kn_opencl_device *)device)->cl->api.clReleaseEvent((cl_event)event);
    }
}
