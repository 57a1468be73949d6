/* Launches. Work-group memory given at launch (KILN_ARG_LOCAL) becomes the launch's dynamic shared
 * memory: kernels take it as `extern __shared__`, not as a parameter. */
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "base/diag.h"
#include "gpu/gpu.h"

enum { MAX_ARGS = 128, THREADS_MAX = 1024, CHOSEN_BLOCK = 256 }; /* of a group, on every device */

/* The kernel's parameters as the driver wants them: an array of pointers to values. */
typedef struct param_list {
    void *pointers[MAX_ARGS];
    uint64_t buffers[MAX_ARGS];
    size_t count;
    uint64_t local_bytes;
} param_list;

static kiln_status collect_params(const kiln_sys_launch *launch, const kn_gpu_function *function,
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
        const size_t size = arg->kind == KILN_ARG_BUFFER ? sizeof(uint64_t) : arg->size;
        if (function->param_count != SIZE_MAX && list->count < function->param_count &&
            function->params[list->count].size != size) {
            return kiln_diag_set(diag, KILN_E_INVALID, "pass the type that the kernel declares",
                                 launch->entry, "argument %zu has %zu bytes, the kernel takes %zu",
                                 i, size, function->params[list->count].size);
        }
        if (arg->kind == KILN_ARG_BUFFER) {
            list->buffers[list->count] = kn_gpu_buffer_address(NULL, arg->buffer) + arg->offset;
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

/* --- shapes ----------------------------------------------------------------------------------- */

/* Whether the group can be twice as large in a dimension, of at most `limit` threads. */
static bool doubling_fits(const kn_gpu_vendor *vendor, const kiln_sys_launch *launch,
                          const uint64_t local[3], int i, uint64_t limit)
{
    return launch->global[i] % (local[i] * 2) == 0 && local[0] * local[1] * local[2] * 2 <= limit &&
           (i < 2 || local[i] < vendor->block_max_z);
}

/* A group for a launch that leaves it to us: powers of two that divide the grid, widest first; but
 * before that what y and z need, where a grid is not as wide as along x. */
static void choose_block(const kn_gpu_vendor *vendor, const kiln_sys_launch *launch,
                         int max_threads, uint64_t local[3])
{
    const uint64_t most = (uint64_t)max_threads;
    local[0] = local[1] = local[2] = 1;
    for (int i = 1; i < 3; i++) {
        while (launch->global[i] / local[i] > vendor->grid_max[i] &&
               doubling_fits(vendor, launch, local, i, most)) {
            local[i] *= 2;
        }
    }
    for (int i = 0; i < 3; i++) {
        while (doubling_fits(vendor, launch, local, i, most < CHOSEN_BLOCK ? most : CHOSEN_BLOCK)) {
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
static kiln_status explain_refusal(const kn_gpu_device *device, const kiln_sys_launch *launch,
                                   const kn_gpu_function *function, const kn_gpu_shape *shape,
                                   kiln_status status, kiln_diag *diag)
{
    const uint64_t local[3] = {shape->block[0], shape->block[1], shape->block[2]};
    const int allowed =
        status == KILN_E_INVALID ? kn_gpu_function_threads(device, function) : THREADS_MAX;
    if (status != KILN_E_INVALID || local[0] * local[1] * local[2] <= (uint64_t)allowed) {
        return status;
    }
    kiln_diag_clear(diag);
    return too_many_threads(launch, local, allowed, diag);
}

static kiln_status shape_launch(const kn_gpu_device *device, const kiln_sys_launch *launch,
                                const kn_gpu_function *function, kn_gpu_shape *shape,
                                kiln_diag *diag)
{
    const kn_gpu_vendor *vendor = device->vendor;
    uint64_t local[3] = {launch->local[0], launch->local[1], launch->local[2]};
    if (local[0] == 0) {
        choose_block(vendor, launch, kn_gpu_function_threads(device, function), local);
    }
    for (int i = 0; i < 3; i++) {
        if (launch->offset[i] != 0) {
            return kiln_diag_set(diag, KILN_E_UNSUPPORTED, "add the offset inside the kernel",
                                 launch->entry, "%s has no global offset", vendor->label);
        }
        const uint64_t groups = launch->global[i] / local[i];
        if (launch->global[i] % local[i] != 0 || groups > vendor->grid_max[i] ||
            launch->global[i] > vendor->items_max) {
            return kiln_diag_set(diag, KILN_E_INVALID, NULL, launch->entry,
                                 "dimension %d: %" PRIu64 " items in groups of %" PRIu64
                                 " cannot be launched",
                                 i, launch->global[i], local[i]);
        }
        shape->grid[i] = (unsigned int)groups;
    }
    if (local[0] > THREADS_MAX || local[1] > THREADS_MAX || local[2] > THREADS_MAX) {
        return too_many_threads(launch, local, THREADS_MAX, diag);
    }
    for (int i = 0; i < 3; i++) {
        shape->block[i] = (unsigned int)local[i];
    }
    return KILN_OK;
}

/* --- launching -------------------------------------------------------------------------------- */

/* A plain launch, or one with what the vendor calls attributes. */
static kiln_status put_launch(const kn_gpu_queue *queue, const kiln_sys_launch *launch,
                              const kn_gpu_function *function, const kn_gpu_shape *shape,
                              void **params, kiln_diag *diag)
{
    const kn_gpu_device *device = queue->device;
    if (launch->cooperative || launch->cluster[0] != 0) {
        return device->vendor->launch_with(device, launch, function, shape, queue->stream, params,
                                           diag);
    }
    const int result = device->driver->launch(
        function->function, shape->grid[0], shape->grid[1], shape->grid[2], shape->block[0],
        shape->block[1], shape->block[2], shape->shared_bytes, queue->stream, params, NULL);
    return kn_gpu_check(device, result, device->vendor->calls.launch, diag);
}

/* Adds the launch's memory to its shape, and asks the driver for it. */
static kiln_status allow_shared(const kiln_sys_launch *launch, kn_gpu_function *function,
                                uint64_t local_bytes, kn_gpu_shape *shape, kiln_diag *diag)
{
    kn_gpu_program *program = (kn_gpu_program *)launch->program;
    const kn_gpu_vendor *vendor = program->device->vendor;
    const uint64_t shared = local_bytes + launch->shared_bytes;
    if (shared > INT_MAX) {
        return kiln_diag_set(diag, KILN_E_INVALID, "use less of it", launch->entry,
                             "%" PRIu64 " bytes of dynamic shared memory", shared);
    }
    shape->shared_bytes = (unsigned int)shared;
    return shared == 0 || vendor->allow_shared == NULL
               ? KILN_OK
               : kn_gpu_check(program->device, vendor->allow_shared(program, function, (int)shared),
                              "dynamic shared memory", diag);
}

/* What the launch is, in the driver's terms. */
static kiln_status prepare_launch(const kn_gpu_device *device, const kiln_sys_launch *launch,
                                  kn_gpu_function **out_function, param_list *params,
                                  kn_gpu_shape *shape, kiln_diag *diag)
{
    kiln_status status = kn_gpu_program_function((kn_gpu_program *)launch->program, launch->entry,
                                                 out_function, diag);
    if (status == KILN_MISS) {
        return KILN_E_INVALID;
    }
    if (status == KILN_OK) {
        status = collect_params(launch, *out_function, params, diag);
    }
    if (status == KILN_OK) {
        status = shape_launch(device, launch, *out_function, shape, diag);
    }
    return status == KILN_OK ? allow_shared(launch, *out_function, params->local_bytes, shape, diag)
                             : status;
}

static kiln_status launch_entered(kn_gpu_queue *queue, const kiln_sys_launch *launch,
                                  void **out_event, kiln_diag *diag)
{
    kn_gpu_function *function = NULL;
    kn_gpu_shape shape = {.shared_bytes = 0};
    param_list params;
    void *event = NULL;
    params.count = 0;
    params.local_bytes = 0;
    kiln_status status = prepare_launch(queue->device, launch, &function, &params, &shape, diag);
    if (status == KILN_OK && out_event != NULL) {
        status = kn_gpu_event_begin(queue, true, &event, diag);
    }
    if (status != KILN_OK) {
        return status;
    }
    status = put_launch(queue, launch, function, &shape, params.pointers, diag);
    if (status != KILN_OK) {
        status = explain_refusal(queue->device, launch, function, &shape, status, diag);
    } else if (event != NULL) {
        status = kn_gpu_event_end(queue, event, diag);
    }
    if (status != KILN_OK) {
        kn_gpu_event_destroy(queue->device, event);
        return status;
    }
    if (out_event != NULL) {
        *out_event = event;
    }
    return KILN_OK;
}

kiln_status kn_gpu_queue_launch(void *handle, const kiln_sys_launch *launch, void **out_event,
                                kiln_diag *diag)
{
    kn_gpu_queue *queue = (kn_gpu_queue *)handle;
    int before = 0;
    kiln_status status = queue->device->vendor->enter(queue->device, &before, diag);
    if (status == KILN_OK) {
        status = launch_entered(queue, launch, out_event, diag);
        queue->device->vendor->leave(queue->device, before);
    }
    return status;
}
