/* What a kernel should have computed: its reference, run in double on the host's processor. */
#ifndef KILN_PROGRAM_KERNEL_REFERENCE_H
#define KILN_PROGRAM_KERNEL_REFERENCE_H

#include <kiln/kiln.h>

#include "kernel/kernel.h"
#include "kernel/kernel_data.h"

/* A runtime with the cpu backend alone, opened when it is first needed. */
typedef struct reference_host {
    kiln_cache *cache; /* borrowed */
    kiln_runtime *runtime;
} reference_host;

void reference_host_deinit(reference_host *host);

/* Fills `wanted` of every written argument that has none from a file. Does nothing for a kernel
 * without a reference. Fails as kiln_program_build and kiln_queue_launch. */
kiln_status kernel_reference_run(reference_host *host, const cli_kernel *kernel, kernel_data *data,
                                 kiln_diag *diag);

#endif
