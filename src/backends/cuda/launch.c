/* Streams, launches, events. Work-group memory given at launch (KILN_ARG_LOCAL) becomes the
 * launch's dynamic shared memory: CUDA kernels take it as `extern __shared__`, not as a parameter.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/instance.h"
#include "base/diag.h"

enum { MAX_ARGS = 128, THREADS_MAX = 1024 }; /* of a block, on every device there is */

typedef struct cuda_event {
    CUevent start, end; /* start is NULL where only the end matters */
} cuda_event;

kiln_status kn_cuda_queue_create(void *opaque, void **out_queue, kiln_diag *diag)
{
    kn_cuda_device *device = (kn_cuda_device *)opaque;
    *out_queue = NULL;
    kn_cuda_queue *queue = (kn_cuda_queue *)calloc(1, sizeof(*queue));
    if (queue == NULL) {
        return kn_no_memory(diag, "queue");
    }
    queue->device = device;
    kiln_status status = kn_cuda_enter(device, diag);
    if (status == KILN_OK) {
        CUresult result =
            device->cuda->driver.cuStreamCreate(&queue->stream, CU_STREAM_NON_BLOCKING);
        kn_cuda_leave(device);
        if (result != CUDA_SUCCESS) {
            status = kn_cuda_fail(device->cuda, result, "cuStreamCreate", diag);
        }
    }
    if (status != KILN_OK) {
        free(queue);
        return status;
    }
    *out_queue = queue;
    return KILN_OK;
}

void kn_cuda_queue_destroy(void *opaque, void *handle)
{
    kn_cuda_device *device = (kn_cuda_device *)opaque;
    kn_cuda_queue *queue = (kn_cuda_queue *)handle;
    if (queue == NULL) {
        return;
    }
    if (!queue->borrowed && kn_cuda_enter(device, NULL) == KILN_OK) {
        (void)device->cuda->driver.cuStreamSynchronize(queue->stream);
        (void)device->cuda->driver.cuStreamDestroy_v2(queue->stream);
        kn_cuda_leave(device);
    }
    free(queue);
}

kiln_status kn_cuda_queue_wrap(void *opaque, uint64_t native, void **out_queue, kiln_diag *diag)
{
    kn_cuda_queue *queue = (kn_cuda_queue *)calloc(1, sizeof(*queue));
    if (queue == NULL) {
        return kn_no_memory(diag, "queue");
    }
    queue->device = (kn_cuda_device *)opaque;
    /* The numbers 0, 1 and 2 are streams, too: the driver takes them as they are. */
    queue->stream = (CUstream)(uintptr_t)native;
    queue->borrowed = true;
    *out_queue = queue;
    return KILN_OK;
}

uint64_t kn_cuda_queue_native(void *device, void *queue)
{
    (void)device;
    return (uint64_t)(uintptr_t)((const kn_cuda_queue *)queue)->stream;
}

kiln_status kn_cuda_queue_mark(void *handle, void **out_event, kiln_diag *diag)
{
    kn_cuda_queue *queue = (kn_cuda_queue *)handle;
    kiln_status status = kn_cuda_enter(queue->device, diag);
    if (status != KILN_OK) {
        return status;
    }
    void *event = NULL;
    status = kn_cuda_event_begin(queue, false, &event, diag);
    if (status == KILN_OK && event != NULL) {
        status = kn_cuda_event_end(queue, event, diag);
    }
    kn_cuda_leave(queue->device);
    if (status != KILN_OK) {
        kn_cuda_event_destroy(queue->device, event);
        return status;
    }
    *out_event = event;
    return KILN_OK;
}

kiln_status kn_cuda_queue_finish(void *handle, kiln_diag *diag)
{
    kn_cuda_queue *queue = (kn_cuda_queue *)handle;
    kiln_status status = kn_cuda_enter(queue->device, diag);
    if (status != KILN_OK) {
        return status;
    }
    CUresult result = queue->device->cuda->driver.cuStreamSynchronize(queue->stream);
    kn_cuda_leave(queue->device);
    return result == CUDA_SUCCESS
               ? KILN_OK
               : kn_cuda_fail(queue->device->cuda, result, "cuStreamSynchronize", diag);
}

kiln_status kn_cuda_queue_wait(void *handle, void *event, kiln_diag *diag)
{
    const kn_cuda_queue *queue = (const kn_cuda_queue *)handle;
    kiln_status status = kn_cuda_enter(queue->device, diag);
    if (status != KILN_OK) {
        return status;
    }
    CUresult result = queue->device->cuda->driver.cuStreamWaitEvent(
        queue->stream, ((const cuda_event *)event)->end, 0);
    kn_cuda_leave(queue->device);
    return result == CUDA_SUCCESS
               ? KILN_OK
               : kn_cuda_fail(queue->device->cuda, result, "cuStreamWaitEvent", diag);
}

kiln_status kn_cuda_event_begin(kn_cuda_queue *queue, bool timed, void **out_event, kiln_diag *diag)
{
    const kn_cuda_driver *driver = &queue->device->cuda->driver;
    *out_event = NULL;
    cuda_event *event = (cuda_event *)calloc(1, sizeof(*event));
    if (event == NULL) {
        return kn_no_memory(diag, "event");
    }
    CUresult result = driver->cuEventCreate(&event->end, CU_EVENT_DEFAULT);
    if (result == CUDA_SUCCESS && timed) {
        result = driver->cuEventCreate(&event->start, CU_EVENT_DEFAULT);
    }
    if (result == CUDA_SUCCESS && timed) {
        result = driver->cuEventRecord(event->start, queue->stream);
    }
    if (result != CUDA_SUCCESS) {
        kn_cuda_event_destroy(queue->device, event);
        return kn_cuda_fail(queue->device->cuda, result, "cuEventCreate", diag);
    }
    *out_event = event;
    return KILN_OK;
}

kiln_status kn_cuda_event_end(kn_cuda_queue *queue, void *handle, kiln_diag *diag)
{
    const cuda_event *event = (const cuda_event *)handle;
    CUresult result = queue->device->cuda->driver.cuEventRecord(event->end, queue->stream);
    return result == CUDA_SUCCESS
               ? KILN_OK
               : kn_cuda_fail(queue->device->cuda, result, "cuEventRecord", diag);
}

bool kn_cuda_event_done(void *opaque, void *handle)
{
    kn_cuda_device *device = (kn_cuda_device *)opaque;
    const cuda_event *event = (const cuda_event *)handle;
    bool done = true;
    if (kn_cuda_enter(device, NULL) == KILN_OK) {
        done = device->cuda->driver.cuEventQuery(event->end) != CUDA_ERROR_NOT_READY;
        kn_cuda_leave(device);
    }
    return done;
}

kiln_status kn_cuda_event_wait(void *opaque, void *handle, kiln_diag *diag)
{
    kn_cuda_device *device = (kn_cuda_device *)opaque;
    const cuda_event *event = (const cuda_event *)handle;
    kiln_status status = kn_cuda_enter(device, diag);
    if (status != KILN_OK) {
        return status;
    }
    CUresult result = device->cuda->driver.cuEventSynchronize(event->end);
    kn_cuda_leave(device);
    return result == CUDA_SUCCESS ? KILN_OK
                                  : kn_cuda_fail(device->cuda, result, "cuEventSynchronize", diag);
}

kiln_status kn_cuda_event_elapsed(void *opaque, void *handle, uint64_t *out_ns, kiln_diag *diag)
{
    kn_cuda_device *device = (kn_cuda_device *)opaque;
    const cuda_event *event = (const cuda_event *)handle;
    float ms = 0.0F;
    *out_ns = 0;
    if (event->start == NULL) {
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, NULL, "event", "a copy was not timed");
    }
    kiln_status status = kn_cuda_enter(device, diag);
    if (status != KILN_OK) {
        return status;
    }
    CUresult result = device->cuda->driver.cuEventSynchronize(event->end);
    if (result == CUDA_SUCCESS) {
        result = device->cuda->driver.cuEventElapsedTime(&ms, event->start, event->end);
    }
    kn_cuda_leave(device);
    if (result != CUDA_SUCCESS) {
        return kn_cuda_fail(device->cuda, result, "cuEventElapsedTime", diag);
    }
    *out_ns = (uint64_t)((double)ms * 1e6);
    return KILN_OK;
}

void kn_cuda_event_destroy(void *opaque, void *handle)
{
    kn_cuda_device *device = (kn_cuda_device *)opaque;
    cuda_event *event = (cuda_event *)handle;
    if (event == NULL) {
        return;
    }
    if (kn_cuda_enter(device, NULL) == KILN_OK) {
        if (event->start != NULL) {
            (void)device->cuda->driver.cuEventDestroy_v2(event->start);
        }
        if (event->end != NULL) {
            (void)device->cuda->driver.cuEventDestroy_v2(event->end);
        }
        kn_cuda_leave(device);
    }
    free(event);
}

/* The kernel's parameters as the driver wants them: an array of pointers to values. */
typedef struct param_list {
    void *pointers[MAX_ARGS];
    CUdeviceptr buffers[MAX_ARGS];
    size_t count;
    uint64_t local_bytes;
} param_list;

static kiln_status collect_params(const kiln_sys_launch *launch, const kn_cuda_function *function,
                                  param_list *list, kiln_diag *diag)
{
    for (size_t i = 0; i < launch->arg_count; i++) {
        const kiln_sys_arg *arg = &launch->args[i];
        if (arg->kind == KILN_ARG_LOCAL) {
            list->local_bytes += arg->size;
            continue;
        }
        if (list->count == MAX_ARGS) {
            return kiln_diag_set(diag, KILN_E_INVALID, NULL, launch->entry,
                                 "more than %d arguments", MAX_ARGS);
        }
        const size_t size = arg->kind == KILN_ARG_BUFFER ? sizeof(CUdeviceptr) : arg->size;
        if (function->param_count != SIZE_MAX && list->count < function->param_count &&
            function->params[list->count].size != size) {
            return kiln_diag_set(diag, KILN_E_INVALID, "pass the type that the kernel declares",
                                 launch->entry, "argument %zu has %zu bytes, the kernel takes %zu",
                                 i, size, function->params[list->count].size);
        }
        if (arg->kind == KILN_ARG_BUFFER) {
            list->buffers[list->count] = kn_cuda_buffer_pointer(arg->buffer) + arg->offset;
            list->pointers[list->count] = &list->buffers[list->count];
        } else {
            list->pointers[list->count] = (void *)(uintptr_t)arg->value;
        }
        list->count++;
    }
    if (function->param_count != SIZE_MAX && list->count != function->param_count) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, launch->entry,
                             "the kernel takes %zu arguments, %zu were given",
                             function->param_count, list->count);
    }
    return KILN_OK;
}

enum { GRID_MAX_YZ = 65535, BLOCK_MAX_Z = 64, CHOSEN_BLOCK = 256 };

/* Whether the block can be twice as large in a dimension, of at most `limit` threads. */
static bool doubling_fits(const kiln_sys_launch *launch, const uint64_t local[3], int i,
                          uint64_t limit)
{
    return launch->global[i] % (local[i] * 2) == 0 && local[0] * local[1] * local[2] * 2 <= limit &&
           (i < 2 || local[i] < BLOCK_MAX_Z);
}

/* A block for a launch that leaves it to us: powers of two that divide the grid, widest first; but
 * before that what y and z need, where a grid is not as wide as along x. */
static void choose_block(const kiln_sys_launch *launch, int max_threads, uint64_t local[3])
{
    const uint64_t most = (uint64_t)max_threads;
    local[0] = local[1] = local[2] = 1;
    for (int i = 1; i < 3; i++) {
        while (launch->global[i] / local[i] > GRID_MAX_YZ &&
               doubling_fits(launch, local, i, most)) {
            local[i] *= 2;
        }
    }
    for (int i = 0; i < 3; i++) {
        while (doubling_fits(launch, local, i, most < CHOSEN_BLOCK ? most : CHOSEN_BLOCK)) {
            local[i] *= 2;
        }
    }
}

static kiln_status too_many_threads(const kiln_sys_launch *launch, const uint64_t local[3],
                                    int allowed, kiln_diag *diag)
{
    return kiln_diag_set(diag, KILN_E_INVALID, "use smaller groups", launch->entry,
                         "%" PRIu64 " x %" PRIu64 " x %" PRIu64
                         " work-items in a group; this kernel allows %d",
                         local[0], local[1], local[2], allowed);
}

/* Why the driver took no launch, where its own words do not say. */
static kiln_status explain_refusal(const kn_cuda *cuda, const kiln_sys_launch *launch,
                                   const kn_cuda_function *function, const CUlaunchConfig *config,
                                   kiln_status status, kiln_diag *diag)
{
    const uint64_t local[3] = {config->blockDimX, config->blockDimY, config->blockDimZ};
    const int allowed =
        status == KILN_E_INVALID ? kn_cuda_function_threads(cuda, function) : THREADS_MAX;
    if (status != KILN_E_INVALID || local[0] * local[1] * local[2] <= (uint64_t)allowed) {
        return status;
    }
    kiln_diag_clear(diag);
    return too_many_threads(launch, local, allowed, diag);
}

static kiln_status shape_launch(const kn_cuda *cuda, const kiln_sys_launch *launch,
                                const kn_cuda_function *function, CUlaunchConfig *config,
                                kiln_diag *diag)
{
    uint64_t local[3] = {launch->local[0], launch->local[1], launch->local[2]};
    uint64_t grid[3];
    if (local[0] == 0) {
        choose_block(launch, kn_cuda_function_threads(cuda, function), local);
    }
    for (int i = 0; i < 3; i++) {
        if (launch->offset[i] != 0) {
            return kiln_diag_set(diag, KILN_E_UNSUPPORTED, "add the offset inside the kernel",
                                 launch->entry, "CUDA has no global offset");
        }
        grid[i] = launch->global[i] / local[i];
        if (launch->global[i] % local[i] != 0 || grid[i] > (i == 0 ? INT_MAX : GRID_MAX_YZ)) {
            return kiln_diag_set(diag, KILN_E_INVALID, NULL, launch->entry,
                                 "dimension %d: %llu items in groups of %llu cannot be launched", i,
                                 (unsigned long long)launch->global[i],
                                 (unsigned long long)local[i]);
        }
    }
    if (local[0] > THREADS_MAX || local[1] > THREADS_MAX || local[2] > THREADS_MAX) {
        return too_many_threads(launch, local, THREADS_MAX, diag);
    }
    config->gridDimX = (unsigned int)grid[0];
    config->gridDimY = (unsigned int)grid[1];
    config->gridDimZ = (unsigned int)grid[2];
    config->blockDimX = (unsigned int)local[0];
    config->blockDimY = (unsigned int)local[1];
    config->blockDimZ = (unsigned int)local[2];
    return KILN_OK;
}

static bool has_cluster(const kiln_sys_launch *launch)
{
    return launch->cluster[0] != 0;
}

/* A plain launch, or one with attributes where the driver has them (11.8). */
static kiln_status put_launch(const kn_cuda *cuda, const kiln_sys_launch *launch,
                              const kn_cuda_function *function, CUlaunchConfig *config,
                              void **params, kiln_diag *diag)
{
    const kn_cuda_driver *driver = &cuda->driver;
    CUlaunchAttribute attributes[2];
    if (!launch->cooperative && !has_cluster(launch)) {
        CUresult result = driver->cuLaunchKernel(
            function->function, config->gridDimX, config->gridDimY, config->gridDimZ,
            config->blockDimX, config->blockDimY, config->blockDimZ, config->sharedMemBytes,
            config->hStream, params, NULL);
        return result == CUDA_SUCCESS ? KILN_OK
                                      : kn_cuda_fail(cuda, result, "cuLaunchKernel", diag);
    }
    if (driver->cuLaunchKernelEx == NULL) {
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, "install a driver for CUDA 11.8 or newer",
                             launch->entry,
                             "this driver has no launches with cooperation or clusters");
    }
    memset(attributes, 0, sizeof(attributes));
    if (launch->cooperative) {
        attributes[config->numAttrs].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        attributes[config->numAttrs++].value.cooperative = 1;
    }
    if (has_cluster(launch)) {
        attributes[config->numAttrs].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
        attributes[config->numAttrs].value.cluster.x = launch->cluster[0];
        attributes[config->numAttrs].value.cluster.y = launch->cluster[1];
        attributes[config->numAttrs++].value.cluster.z = launch->cluster[2];
    }
    config->attrs = attributes;
    CUresult result = driver->cuLaunchKernelEx(config, function->function, params, NULL);
    config->attrs = NULL;
    return result == CUDA_SUCCESS ? KILN_OK : kn_cuda_fail(cuda, result, "cuLaunchKernelEx", diag);
}

static kiln_status launch_entered(kn_cuda_queue *queue, const kiln_sys_launch *launch,
                                  void **out_event, kiln_diag *diag)
{
    const kn_cuda *cuda = queue->device->cuda;
    kn_cuda_function *function = NULL;
    CUlaunchConfig config = {0};
    param_list params = {.count = 0};
    kiln_status status = kn_cuda_program_function(launch->program, launch->entry, &function, diag);
    if (status == KILN_MISS) {
        return KILN_E_INVALID;
    }
    if (status == KILN_OK) {
        status = collect_params(launch, function, &params, diag);
    }
    if (status == KILN_OK) {
        status = shape_launch(cuda, launch, function, &config, diag);
    }
    if (status != KILN_OK) {
        return status;
    }
    const uint64_t shared = params.local_bytes + launch->shared_bytes;
    CUresult result = shared > INT_MAX
                          ? CUDA_ERROR_INVALID_VALUE
                          : kn_cuda_program_allow_shared(launch->program, function, (int)shared);
    if (result != CUDA_SUCCESS) {
        return kn_cuda_fail(cuda, result, "dynamic shared memory", diag);
    }
    void *event = NULL;
    if (out_event != NULL) {
        status = kn_cuda_event_begin(queue, true, &event, diag);
        if (status != KILN_OK) {
            return status;
        }
    }
    config.sharedMemBytes = (unsigned int)shared;
    config.hStream = queue->stream;
    status = put_launch(cuda, launch, function, &config, params.pointers, diag);
    if (status != KILN_OK) {
        status = explain_refusal(cuda, launch, function, &config, status, diag);
    } else if (event != NULL) {
        status = kn_cuda_event_end(queue, event, diag);
    }
    if (status != KILN_OK) {
        kn_cuda_event_destroy(queue->device, event);
        return status;
    }
    if (out_event != NULL) {
        *out_event = event;
    }
    return KILN_OK;
}

kiln_status kn_cuda_queue_launch(void *handle, const kiln_sys_launch *launch, void **out_event,
                                 kiln_diag *diag)
{
    kn_cuda_queue *queue = (kn_cuda_queue *)handle;
    kiln_status status = kn_cuda_enter(queue->device, diag);
    if (status == KILN_OK) {
        status = launch_entered(queue, launch, out_event, diag);
        kn_cuda_leave(queue->device);
    }
    return status;
}
