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

static void describe_arg(kernel_launch *launch, kiln_device *device, const kernel_content *content,
                         size_t index)
{
    const kernel_arg *arg = &launch->kernel->args[index];
    kiln_arg *out = &launch->args[index];
    if (kernel_is_buffer(arg)) {
        launch->status =
            kiln_buffer_create(device, content->size, &launch->buffers[index], launch->diag);
        *out = (kiln_arg){.kind = KILN_ARG_BUFFER, .buffer = launch->buffers[index]};
    } else if (arg->access == KERNEL_LOCAL) {
        *out = (kiln_arg){.kind = KILN_ARG_LOCAL, .size = content->size};
    } else {
        *out = (kiln_arg){.kind = KILN_ARG_VALUE, .size = content->size, .value = content->initial};
    }
}

void kernel_launch_init(kernel_launch *launch, kiln_device *device, const cli_kernel *kernel,
                        const kernel_shape *shape, const kernel_data *contents, kiln_diag *diag)
{
    *launch = (kernel_launch){.kernel = kernel, .count = kernel->arg_count, .diag = diag};
    launch->status = kiln_queue_create(device, &launch->queue, diag);
    for (size_t i = 0; i < launch->count && launch->status == KILN_OK; i++) {
        describe_arg(launch, device, &contents->args[i], i);
    }
    kernel_shape_to_launch(shape, &launch->shape);
    launch->shape.args = launch->args;
    launch->shape.arg_count = launch->count;
}

void kernel_launch_deinit(kernel_launch *launch)
{
    for (size_t i = 0; i < launch->count; i++) {
        kiln_buffer_destroy(launch->buffers[i]);
    }
    kiln_queue_destroy(launch->queue);
    *launch = (kernel_launch){0};
}

void kernel_launch_write(kernel_launch *launch, const kernel_data *contents, bool all)
{
    for (size_t i = 0; i < launch->count && launch->status == KILN_OK; i++) {
        if (launch->buffers[i] != NULL && (all || launch->kernel->args[i].access == KERNEL_INOUT)) {
            launch->status =
                kiln_queue_write(launch->queue, launch->buffers[i], 0, contents->args[i].initial,
                                 contents->args[i].size, launch->diag);
        }
    }
}

void kernel_launch_run(kernel_launch *launch, kiln_program *program, const char *entry,
                       uint64_t *out_device_ns)
{
    kiln_event *event = NULL;
    if (launch->status != KILN_OK) {
        return;
    }
    kiln_status status =
        kiln_queue_launch(launch->queue, program, entry, &launch->shape, &event, launch->diag);
    if (status == KILN_OK) {
        status = kiln_event_wait(event, launch->diag);
    }
    if (status == KILN_OK && out_device_ns != NULL) {
        status = kiln_event_elapsed(event, out_device_ns, launch->diag);
    }
    kiln_event_release(event);
    launch->status = status;
}

void kernel_launch_read(kernel_launch *launch, kernel_data *contents)
{
    for (size_t i = 0; i < launch->count && launch->status == KILN_OK; i++) {
        if (kernel_is_written(&launch->kernel->args[i])) {
            launch->status =
                kiln_queue_read(launch->queue, launch->buffers[i], 0, contents->args[i].result,
                                contents->args[i].size, launch->diag);
        }
    }
}
