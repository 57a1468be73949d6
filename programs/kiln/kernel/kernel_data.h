/* The host's side of a kernel's arguments: what they begin as, what came back, what should have. */
#ifndef KILN_PROGRAM_KERNEL_DATA_H
#define KILN_PROGRAM_KERNEL_DATA_H

#include "kernel/kernel.h"

typedef struct kernel_content {
    size_t size;           /* bytes of a buffer, a value, or of work-group memory */
    void *initial;         /* buffers that are read, and values */
    void *result;          /* buffers that are written */
    void *wanted;          /* what should be in `result`; NULL if nothing says */
    data_type wanted_type; /* a reference writes doubles */
} kernel_content;

typedef struct kernel_data {
    size_t count;
    kernel_content args[KERNEL_MAX_ARGS];
} kernel_data;

/* Allocates, reads files and generates values. kernel_data_deinit in any case. KILN_E_INVALID,
 * KILN_E_NOMEM. */
kiln_status kernel_data_load(const cli_kernel *kernel, kernel_data *out_data, kiln_diag *diag);
void kernel_data_deinit(kernel_data *data);

/* Writes the results that are to be saved. */
kiln_status kernel_data_save(const cli_kernel *kernel, const kernel_data *data, kiln_diag *diag);

/* Compares the results with what is wanted. True if everything is within tolerance; else `reason`
 * has the first difference. */
bool kernel_data_check(const cli_kernel *kernel, const kernel_data *data,
                       data_difference *out_difference, char *reason, size_t reason_size);
/* Whether anything is wanted at all. */
bool kernel_data_has_wanted(const kernel_data *data);

#endif
