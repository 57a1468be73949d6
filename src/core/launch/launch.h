/* A launch for those inside core who bring their own room for it. */
#ifndef KILN_CORE_LAUNCH_H
#define KILN_CORE_LAUNCH_H

#include "core/build/program.h"

/* kiln_queue_launch without an allocation of kiln's own: `room` is for launch->arg_count resolved
 * arguments, *out_handle the backend's event. */
kiln_status kn_launch_put(kiln_queue *queue, kiln_program *program, const char *entry,
                          const kiln_launch *launch, kiln_sys_arg *room, void **out_handle,
                          kiln_diag *diag);

static inline kiln_device *kn_program_device(const kiln_program *program)
{
    return program->device;
}

#endif
