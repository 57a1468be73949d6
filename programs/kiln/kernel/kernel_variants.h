/* A kernel's forms, each with its variants after it, as the library's list of variants. */
#ifndef KILN_PROGRAM_KERNEL_VARIANTS_H
#define KILN_PROGRAM_KERNEL_VARIANTS_H

#include <kiln/kiln.h>
#include <kiln/unstable/tune.h>

#include "kernel/kernel_source.h"

typedef struct kernel_variants {
    kiln_kernel kernel;
    kiln_variant variants[KILN_VARIANTS_MAX];
    kernel_source sources[KILN_VARIANTS_MAX]; /* each with the form it is of */
    size_t source_count;
} kernel_variants;

/* The form or variant at `place` of the list, from 0; NULL behind the last. */
const kernel_form *kernel_variants_form(const cli_kernel *kernel, size_t place);

/* Reads the sources. kernel_variants_destroy; NULL is allowed. The list borrows from `kernel`.
 * KILN_E_INVALID (a file), KILN_E_NOMEM. */
kiln_status kernel_variants_create(const cli_kernel *kernel, kernel_variants **out_list,
                                   kiln_diag *diag);
void kernel_variants_destroy(kernel_variants *list);

#endif
