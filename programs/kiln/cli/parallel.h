/* Doing many small pieces of work at once, in no order. */
#ifndef KILN_PROGRAM_PARALLEL_H
#define KILN_PROGRAM_PARALLEL_H

#include <stddef.h>
#include <stdint.h>

#include <kiln/status.h>

#include "cli/opt.h"

/* How many compiles to run at once: `asked` if that is not 0, else one a processor, at most one a
 * GiB of memory, and at least one. */
size_t parallel_jobs(uint64_t asked);
/* The same for an option that falls back to $KILN_COMPILE_JOBS. KILN_E_INVALID names the variable.
 */
kiln_status parallel_choose(const opt_number *asked, size_t *out_jobs, kiln_diag *diag);

/* Calls `work(user, i)` for every i below `count` on up to `jobs` threads, and returns when all are
 * done. Where a thread cannot be started, fewer do it. */
typedef void parallel_fn(void *user, size_t index);
void parallel_each(size_t count, size_t jobs, parallel_fn *work, void *user);

#endif
