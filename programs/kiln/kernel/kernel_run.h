/* One kernel on one device: build, launch, measure, compare. */
#ifndef KILN_PROGRAM_KERNEL_RUN_H
#define KILN_PROGRAM_KERNEL_RUN_H

#include "cli/console.h"
#include "kernel/kernel_build.h"
#include "kernel/kernel_data.h"

typedef struct kernel_result {
    const char *kernel;
    const kiln_device_info *device; /* NULL if it did not get as far as a device */
    kiln_language language;
    const char *variant; /* the one that was picked; NULL for a kernel without variants */
    kiln_origin origin;
    uint32_t compiles;
    uint64_t key_ns, lookup_ns, compile_ns, load_ns, build_ns;
    uint64_t first_launch_ns; /* from launch to done, the first time */
    uint64_t readback_ns;
    uint64_t first_result_ns;  /* build + first launch + read back: how long a user waits */
    uint64_t median_launch_ns; /* of `repeats` launches, by the host's clock */
    uint64_t median_device_ns; /* by the device's clock, where it has one */
    uint32_t repeats;
    bool checked;
    bool ok;
    kiln_status status;
    data_difference difference;
    char reason[512]; /* why it is not ok */
} kernel_result;

typedef struct kernel_run_options {
    uint32_t repeats;
    bool bounded; /* stop repeating after a second */
    bool check;   /* compare with what is wanted */
    cli_console *console;
    bool cache_only; /* never compile: a miss is KILN_MISS */
} kernel_run_options;

/* Runs `kernel` on `device`; the results are left in `data`. Always fills *out_result; a failure is
 * in its status and reason, and returned with its diag. A wrong result is KILN_OK and not ok. */
kiln_status kernel_run(const cli_kernel *kernel, kiln_device *device, kernel_data *data,
                       const kernel_run_options *options, kernel_result *out_result,
                       kiln_diag *diag);

#endif
