/* kiln run --watch: which kernels' files have changed since the last look. */
#ifndef KILN_PROGRAM_RUN_WATCH_H
#define KILN_PROGRAM_RUN_WATCH_H

#include <kiln/kiln.h>
#include <kiln/unstable/watch.h>

#include "cli/cmd.h"
#include "kernel/kernel.h"

typedef struct run_watch {
    cli_kernel *kernel;
    kiln_watch *watch;
} run_watch;

typedef struct run_watches {
    run_watch *items; /* room for KILN_VARIANTS_MAX a kernel and device */
    size_t count;
} run_watches;

/* Follows the first of the kernel's sources that the device takes, and those of its variants; a
 * kernel without a file is not followed. The program must have been built, or have failed to, just
 * now. */
kiln_status run_watches_add(run_watches *watches, cli_kernel *kernel, kiln_device *device,
                            kiln_diag *diag);
/* One look: `run` is called for each kernel that has another program now; what does not compile is
 * reported. True if anything happened. */
bool run_watches_look(const run_watches *watches, const cmd_context *context,
                      void (*run)(void *user, cli_kernel *kernel), void *user);
void run_watches_deinit(run_watches *watches);

#endif
