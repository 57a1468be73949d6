/* A form of a kernel as a source with its text. */
#ifndef KILN_PROGRAM_KERNEL_SOURCE_H
#define KILN_PROGRAM_KERNEL_SOURCE_H

#include <kiln/kiln.h>

#include "kernel/kernel.h"

/* `source` points into the rest, and into the kernel: it must not move. */
typedef struct kernel_source {
    kiln_source source;
    const kernel_form *form;
    const struct kiln_cpu_kernel *builtin;
    char *text;
    char name[1024];
} kernel_source;

/* Everything but the text. KILN_E_INVALID: there is no such built-in kernel. */
kiln_status kernel_source_init(const cli_kernel *kernel, const kernel_form *form,
                               kernel_source *out_source, kiln_diag *diag);
/* KILN_E_INVALID, KILN_E_NOMEM. kernel_source_deinit in every case. */
kiln_status kernel_source_read(const cli_kernel *kernel, const kernel_form *form,
                               kernel_source *out_source, kiln_diag *diag);
/* As kernel_source_read for what is compiled ahead. KILN_E_UNSUPPORTED for a built-in form: there
 * is nothing to `what`. */
kiln_status kernel_source_read_file(const cli_kernel *kernel, const kernel_form *form,
                                    const char *what, kernel_source *out_source, kiln_diag *diag);
void kernel_source_deinit(kernel_source *source);

#endif
