/* From a kernel and a device to a loaded program: tries the kernel's languages in their order. */
#ifndef KILN_PROGRAM_KERNEL_BUILD_H
#define KILN_PROGRAM_KERNEL_BUILD_H

#include <kiln/kiln.h>

#include "kernel.h"

typedef struct kernel_built {
    kiln_program *program;
    const kernel_form *form; /* the one that was built; NULL if none was tried */
    const char *entry;       /* the form's, or the program's only one */
} kernel_built;

/* A source for one form; the text must be set by the caller. False: no such built-in kernel. */
bool kernel_source_init(const cli_kernel *kernel, const kernel_form *form, kiln_source *out_source,
                        const struct kiln_cpu_kernel **out_builtin);

/* Builds for a device. A language that the backend does not take, or whose compiler is not there,
 * gives way to the next one; what does not compile does not. On success out_built->program is the
 * caller's. Fails as kiln_program_build; KILN_E_INVALID where no entry was named and the program
 * has not exactly one. */
kiln_status kernel_build(const cli_kernel *kernel, kiln_device *device,
                         const kiln_build_options *options, kernel_built *out_built,
                         kiln_diag *diag);

#endif
