/* From a kernel and a device to a loaded program: tries the kernel's languages in their order. */
#ifndef KILN_PROGRAM_KERNEL_BUILD_H
#define KILN_PROGRAM_KERNEL_BUILD_H

#include <kiln/kiln.h>

#include "kernel/kernel.h"

typedef struct kernel_built {
    kiln_program *program;
    const kernel_form *form; /* the one that was built; NULL if none was tried */
    const char *entry;       /* the form's, or the program's only one */
} kernel_built;

/* The device that suits the kernel's languages best. */
kiln_status kernel_select_device(kiln_runtime *runtime, const cli_kernel *kernel,
                                 kiln_device **out_device, kiln_diag *diag);

/* Builds for a device: of a kernel with variants the one that kiln tune chose. A language that the
 * backend does not take, or whose compiler is not there, gives way to the next one; what does not
 * compile does not. On success out_built->program is the caller's. Fails as kiln_program_build;
 * KILN_E_INVALID where no entry was named and the program has not exactly one. */
kiln_status kernel_build(const cli_kernel *kernel, kiln_device *device,
                         const kiln_build_options *options, kernel_built *out_built,
                         kiln_diag *diag);

#endif
