/* What a cache holds, read for a page: its entries with what their recipes say, its counters, and
 * why compiles bypassed it. */
#ifndef KILN_PROGRAM_PAGE_HOLDINGS_H
#define KILN_PROGRAM_PAGE_HOLDINGS_H

#include <kiln/runtime.h>
#include <kiln/unstable/counters.h>

#include "cli/bypasses.h"
#include "cli/console.h"
#include "cli/listing.h"

typedef struct held_entry {
    kiln_key key;
    const char *target;
    const char *stage; /* "opencl.binary" */
    const char *name;  /* what of the recipe a person knows it by */
    bool note;         /* kiln's own, not a program */
    uint64_t stored_size, compile_ns;
    int64_t created_ns, used_ns;
    uint64_t uses; /* by programs of a runtime; 0 where nothing is known */
} held_entry;

typedef struct holdings {
    const char *root;
    held_entry *entries; /* most expensive first */
    size_t count;
    size_t unreadable; /* damaged or gone meanwhile */
    uint64_t disk_bytes;
    uint64_t counters[KILN_COUNTERS];
    cli_bypasses bypasses;
} holdings;

/* Reads all entries of `cache`, with a bar on the console. */
kiln_status holdings_read(kiln_cache *cache, cli_pool *pool, cli_console *console,
                          holdings *out_holdings, kiln_diag *diag);

#endif
