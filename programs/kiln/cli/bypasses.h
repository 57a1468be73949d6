/* Why compiles bypassed the cache, and what remotes gave that was refused, as stats and doctor show
 * it. */
#ifndef KILN_PROGRAM_BYPASSES_H
#define KILN_PROGRAM_BYPASSES_H

#include <kiln/cache.h>
#include <kiln/unstable/admin.h>

#include "cli/pool.h"

/* Copies of what kiln_cache_walk_bypasses shows, the most expensive first. */
typedef struct cli_bypasses {
    const kiln_bypass *items;
    size_t count;
} cli_bypasses;

kiln_status bypasses_read(kiln_cache *cache, cli_pool *pool, cli_bypasses *out_bypasses,
                          kiln_diag *diag);

/* One line where entries of remotes were refused: how many, and what to do. */
void bypasses_print_refused(const char *indent, const uint64_t *counters);

#endif
