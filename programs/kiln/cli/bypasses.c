/* Reads the list of bypasses into a pool, and says what was refused. */
#include "cli/bypasses.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <kiln/unstable/counters.h>

enum { MOST = 64 }; /* the library remembers no more */

typedef struct gathering {
    cli_pool *pool;
    kiln_bypass *items;
    size_t count;
} gathering;

static kiln_status gather_bypass(void *user, const kiln_bypass *bypass)
{
    gathering *g = user;
    if (g->count == MOST) {
        return KILN_OK;
    }
    kiln_bypass *copy = &g->items[g->count];
    *copy = *bypass;
    copy->reason = pool_text(g->pool, bypass->reason, strlen(bypass->reason));
    copy->what = pool_text(g->pool, bypass->what, strlen(bypass->what));
    g->count++;
    return copy->reason != NULL && copy->what != NULL ? KILN_OK : KILN_E_NOMEM;
}

kiln_status bypasses_read(kiln_cache *cache, cli_pool *pool, cli_bypasses *out_bypasses,
                          kiln_diag *diag)
{
    gathering g = {.pool = pool, .items = pool_array(pool, MOST, sizeof(*g.items))};
    kiln_status status =
        g.items != NULL ? kiln_cache_walk_bypasses(cache, gather_bypass, &g, diag) : KILN_E_NOMEM;
    *out_bypasses = (cli_bypasses){g.items, g.count};
    return status == KILN_E_NOMEM
               ? kiln_diag_set(diag, status, NULL, "reading the cache's bypasses", "out of memory")
               : status;
}

void bypasses_print_refused(const char *indent, const uint64_t *counters)
{
    const uint64_t refused = counters[KILN_COUNTER_REMOTE_REFUSED];
    if (refused > 0) {
        (void)printf("%srefused   %" PRIu64 " %s of remotes: sign what is uploaded (`kiln key "
                     "generate`, KILN_SIGNING_KEY there, KILN_TRUSTED_KEYS here), or add "
                     "unsigned-native to the remote's URL\n",
                     indent, refused, refused == 1 ? "entry" : "entries");
    }
}
