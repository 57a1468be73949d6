/* A launch on another device than the queue's: how a program whose compile is not done yet runs on
 * the processor. */
#ifndef KILN_CORE_DETOUR_H
#define KILN_CORE_DETOUR_H

#include "core/build/program.h"

/* Brings the buffers over, runs `program` there, and brings them back; done when it returns. */
kiln_status kn_detour_launch(kiln_queue *queue, kiln_program *program, const char *entry,
                             const kiln_launch *launch, uint64_t *out_ns, kiln_diag *diag);

#endif
