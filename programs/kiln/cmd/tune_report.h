/* What kiln tune found for each kernel and device, and how it is printed: tables, or JSON whose
 * keys are stable (docs/advanced.md). */
#ifndef KILN_PROGRAM_TUNE_TELL_H
#define KILN_PROGRAM_TUNE_TELL_H

#include <kiln/kiln.h>
#include <kiln/unstable/tune.h>

#include "kernel/kernel.h"

typedef struct tune_item {
    const cli_kernel *kernel;
    const kiln_device_info *device; /* NULL if it did not get as far as a device */
    kiln_status status;
    const char *reason; /* why there is nothing to report; NULL if there is */
    bool skipped;       /* no source for this device: no failure */
    kiln_tuning tuning;
    kiln_tune_row *rows; /* of each place of kernel_variants_form */
    size_t count;
} tune_item;

typedef struct tune_result {
    const char *source;  /* the manifest */
    const char *summary; /* the runtime's line */
    const tune_item *items;
    size_t count;
    size_t without; /* kernels that have no variants */
    bool all_rows;  /* table: every variant, not only the chosen one */
} tune_result;

bool tune_print_table(const tune_result *result, cli_pool *pool);
bool tune_print_json(const tune_result *result);

#endif
