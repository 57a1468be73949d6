/* The packs that KILN_PACKS names, as kiln doctor reports them. */
#ifndef KILN_PROGRAM_DOCTOR_PACKS_H
#define KILN_PROGRAM_DOCTOR_PACKS_H

#include <jansson.h>

#include <kiln/unstable/pack.h>

#include "cli/pool.h"

typedef struct doctor_pack {
    const char *path;
    const char *trouble; /* why it cannot be used; NULL if it can */
    uint64_t entries, bytes;
} doctor_pack;

typedef struct doctor_packs {
    doctor_pack *items;
    size_t count;
} doctor_packs;

/* Opens each pack of `list` (paths with colons between them, NULL for none). False: no memory. */
bool doctor_packs_examine(const char *list, cli_pool *pool, doctor_packs *out_packs);
/* Nothing without packs. False: no memory. */
bool doctor_packs_print(const doctor_packs *packs, cli_pool *pool);
json_t *doctor_packs_json(const doctor_packs *packs);

#endif
