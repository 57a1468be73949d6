/* Why compiles bypassed the cache, as stats and doctor show it. */
#ifndef KILN_PROGRAM_BYPASSES_H
#define KILN_PROGRAM_BYPASSES_H

#include <kiln/cache.h>
#include <kiln/unstable/admin.h>

#include "cli/pool.h"

/* Copies of what kiln_cache_walk_bypasses shows, the dearest first. */
typedef struct cli_bypasses {
    const kiln_bypass *items;
    size_t count;
} cli_bypasses;

kiln_status bypasses_read(kiln_cache *cache, cli_pool *pool, cli_bypasses *out_bypasses,
                          kiln_diag *diag);

#endif
