/* What people call an entry: its label, or what its recipe says. */
#ifndef KILN_PROGRAM_ENTRY_NAME_H
#define KILN_PROGRAM_ENTRY_NAME_H

#include <kiln/unstable/admin.h>

#include "cli/pool.h"

typedef struct entry_name {
    const char *stage; /* "opencl.binary"; "?" where the recipe has none */
    const char *name;  /* "scale.cl: scale RADIUS=7"; the source's digest where nobody named it */
    bool note;         /* kiln's own, not a program */
} entry_name;

/* Of an entry that kiln_cache_inspect shows. False: no memory. */
bool entry_name_of(cli_pool *pool, const kiln_entry_info *info, entry_name *out_name);
/* The same by key. KILN_MISS, KILN_E_CORRUPT: it cannot be read now. */
kiln_status entry_name_find(kiln_cache *cache, const kiln_key *key, cli_pool *pool,
                            entry_name *out_name, kiln_diag *diag);

#endif
