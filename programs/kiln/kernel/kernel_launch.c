/* Buffers, arguments, a launch that is waited for. */
#include "kernel/kernel_launch.h"

void kernel_shape_to_launch(const kernel_shape *shape, kiln_launch *out_launch)
{
    *out_launch = (kiln_launch){.struct_size = sizeof(*out_launch), .dims = shape->dims};
    for (size_t i = 0; i < 3; i++) {
        out_launch->global[i] = i < shape->dims ? shape->global[i] : 1;
        out_launch->local[i] = shape->local[0] == 0 || i < shape->dims ? shape->local[i] : 1;
    }
}

kiln_status kernel_launch_init(kernel_launch *launch, kiln_device *device, const cli_kernel *kernel,
                               const kernel_shape *shape, const kernel_data *contents,
                               kiln_diag *diag)
{
    *launch = (kernel_launch){0};
    launch->count = kernel->arg_count;
    kiln_status status = kiln_queue_create(device, &launch->queue, diag);
    for (size_t i = 0; i < kernel->arg_count && status == KILN_OK; i++) {
        const kernel_arg *arg = &kernel->args[i];
        kiln_arg *out = &launch->args[i];
        out->size = contents->args[i].size;
        if (kernel_is_buffer(arg)) {
            out->kind = KILN_ARG_BUFFER;
            status = kiln_buffer_create(device, out->size, &launch->buffers[i], diag);
            out->buffer = launch->buffers[i];
            out->size = 0;
        } else if (arg->access == KERNEL_LOCAL) {
            out->kind = KILN_ARG_LOCAL;
        } else {
            out->kind = KILN_ARG_VALUE;
            out->value = contents->args[i].initial;
        }
    }
    kernel_shape_to_launch(shape, &launch->shape);
    launch->shape.args = launch->args;
    launch->shape.arg_count = launch->count;
    return status;
}

void kernel_launch_deinit(kernel_launch *launch)
{
    for (size_t i = 0; i < launch->count; i++) {
        kiln_buffer_destroy(launch->buffers[i]);
    }
    kiln_queue_destroy(launch->queue);
    *launch = (kernel_launch){0};
}

kiln_status kernel_launch_write(kernel_launch *launch, const cli_kernel *kernel,
                                const kernel_data *contents, bool all, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    for (size_t i = 0; i < launch->count && status == KILN_OK; i++) {
        if (launch->buffers[i] != NULL && (all || kernel->args[i].access == KERNEL_INOUT)) {
            status = kiln_queue_write(launch->queue, launch->buffers[i], 0,
                                      contents->args[i].initial, contents->args[i].size, diag);
        }
    }
    return status;
}

kiln_status kernel_launch_run(kernel_launch *launch, kiln_program *program, const char *entry,
                              uint64_t *out_device_ns, kiln_diag *diag)
{
    kiln_event *event = NULL;
    kiln_status status =
        kiln_queue_launch(launch->queue, program, entry, &launch->shape, &event, diag);
    if (status == KILN_OK) {
        status = kiln_event_wait(event, diag);
    }
    if (status == KILN_OK && out_device_ns != NULL) {
        status = kiln_event_elapsed(event, out_device_ns, diag);
    }
    kiln_event_release(event);
    return status;
}

kiln_status kernel_launch_read(kernel_launch *launch, const cli_kernel *kernel,
                               kernel_data *contents, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    for (size_t i = 0; i < launch->count && status == KILN_OK; i++) {
        if (kernel_is_written(&kernel->args[i])) {
            status = kiln_queue_read(launch->queue, launch->buffers[i], 0, contents->args[i].result,
                                     contents->args[i].size, diag);
        }
    }
    return status;
}
