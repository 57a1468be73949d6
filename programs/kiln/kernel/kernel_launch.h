/* A kernel's arguments on one device, and launching it there. Used for kernels and, with doubles in
 * place of the floats that are written, for their references. */
#ifndef KILN_PROGRAM_KERNEL_LAUNCH_H
#define KILN_PROGRAM_KERNEL_LAUNCH_H

#include <kiln/kiln.h>

#include "kernel/kernel.h"
#include "kernel/kernel_data.h"

typedef struct kernel_launch {
    const cli_kernel *kernel;
    kiln_status status; /* of the first call that failed, with its diag */
    kiln_diag *diag;
    kiln_queue *queue;
    kiln_buffer *buffers[KERNEL_MAX_ARGS];
    kiln_arg args[KERNEL_MAX_ARGS];
    size_t count;
    kiln_launch shape;
} kernel_launch;

/* A shape as the library takes it, without arguments. */
void kernel_shape_to_launch(const kernel_shape *shape, kiln_launch *out_launch);

/* Each of these does nothing once one has failed. Creates the queue and the buffers; `contents` has
 * what they begin as. kernel_launch_deinit in any case, and before `contents` goes. */
void kernel_launch_init(kernel_launch *launch, kiln_device *device, const cli_kernel *kernel,
                        const kernel_shape *shape, const kernel_data *contents, kiln_diag *diag);
void kernel_launch_deinit(kernel_launch *launch);

/* Copies the initial contents to the device: all buffers, or only those that a launch changes. */
void kernel_launch_write(kernel_launch *launch, const kernel_data *contents, bool all);
/* Launches and waits. `out_device_ns` may be NULL. */
void kernel_launch_run(kernel_launch *launch, kiln_program *program, const char *entry,
                       uint64_t *out_device_ns);
/* Copies what was written into contents->args[].result. */
void kernel_launch_read(kernel_launch *launch, kernel_data *contents);

#endif
