/* What --target names: targets to compile for, each with a runtime that compiles for it. */
#ifndef KILN_PROGRAM_TARGETS_H
#define KILN_PROGRAM_TARGETS_H

#include <kiln/kiln.h>

#include "cli/opt.h"
#include "cli/pool.h"

enum { TARGETS_MAX = 64 };

typedef struct cli_target {
    const char *name;
    kiln_runtime *runtime; /* NULL: there is none here */
    const char *reason;    /* why */
} cli_target;

typedef struct cli_targets {
    cli_target items[TARGETS_MAX];
    size_t count;
} cli_targets;

/* "a,b" and several --target are the same. KILN_E_INVALID where there is none. */
kiln_status targets_read(const opt_list *list, cli_pool *pool, cli_targets *out_targets,
                         kiln_diag *diag);
/* Opens a runtime for each, on `cache`. A backend that is unavailable is a reason, unless nobody
 * has ever heard of it: KILN_E_INVALID. */
kiln_status targets_open(cli_targets *targets, kiln_cache *cache, cli_pool *pool, kiln_diag *diag);
void targets_close(cli_targets *targets);

/* What the command line says where it does not say --target; NULL: nothing. */
typedef struct targets_wish {
    const char *backend, *device, *arch;
} targets_wish;

/* The target to compile one source for: what was wished for, else the best device that takes it. A
 * backend without a device compiles for its own default. As kiln_runtime_select; KILN_E_NOMEM. */
kiln_status targets_choose(kiln_runtime *runtime, const targets_wish *wish,
                           const kiln_source *source, cli_pool *pool, const char **out_target,
                           kiln_diag *diag);

/* The target itself if it has a name of its own, as "cuda:sm_90"; NULL for that of a device. */
const char *targets_named(const char *target);

/* "opencl" of "opencl:0", and "opencl:0" of a device. NULL: no memory. */
char *targets_backend(const char *target, cli_pool *pool);
char *targets_of_device(const kiln_device *device, cli_pool *pool);

#endif
