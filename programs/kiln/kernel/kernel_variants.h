/* A kernel with all its forms and variants as the library's list of variants. A form's own shape is
 * the variant called after its language ("opencl-c"), its others come after it
 * ("opencl-c/tile32"). */
#ifndef KILN_PROGRAM_KERNEL_VARIANTS_H
#define KILN_PROGRAM_KERNEL_VARIANTS_H

#include <kiln/kiln.h>
#include <kiln/unstable/tune.h>

#include "kernel/kernel.h"

/* Where one variant of the list comes from. */
typedef struct kernel_origin {
    const kernel_form *form;
    const kernel_shape *shape;
    const struct kiln_cpu_kernel *builtin;
    const char *entry; /* sources point to it */
    char name[128];
} kernel_origin;

/* One source file: variants share it. */
typedef struct kernel_file {
    const char *path;
    const char *spelled;
    char *text;
    size_t length;
    char buffer[1024];
} kernel_file;

typedef struct kernel_variants {
    kiln_kernel kernel;
    kiln_variant variants[KILN_VARIANTS_MAX];
    kiln_source sources[KILN_VARIANTS_MAX];
    kernel_origin origins[KILN_VARIANTS_MAX];
    kernel_file files[KILN_VARIANTS_MAX];
    size_t file_count;
    uint64_t sizes[KERNEL_MAX_SIZES];
} kernel_variants;

/* Whether any form has variants. */
bool kernel_has_variants(const cli_kernel *kernel);

/* Reads the sources. kernel_variants_destroy; NULL is allowed. The list borrows from `kernel`.
 * KILN_E_INVALID (a file, an amount), KILN_E_NOMEM. */
kiln_status kernel_variants_create(const cli_kernel *kernel, kernel_variants **out_list,
                                   kiln_diag *diag);
void kernel_variants_destroy(kernel_variants *list);

#endif
