/* How the results of `kiln run` are printed: a table, or JSON whose keys and order are stable
 * (kiln-run(1) documents them). */
#ifndef KILN_PROGRAM_REPORT_H
#define KILN_PROGRAM_REPORT_H

#include "kernel/kernel_run.h"

/* A kernel that a device cannot run, and why: no source in a language it takes, or the compiler for
 * it is not there. */
typedef struct report_skip {
    const char *kernel;
    const kiln_device_info *device;
    const char *reason;
} report_skip;

typedef struct cli_report {
    const char *source;  /* the manifest or file */
    const char *summary; /* the runtime's line */
    kernel_result *results;
    size_t result_count;
    report_skip *skips;
    size_t skip_count;
} cli_report;

bool report_print_table(const cli_report *report, cli_pool *pool);
bool report_print_json(const cli_report *report);

#endif
