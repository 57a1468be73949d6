/* The caches that drivers keep by themselves. They hide what a compile really costs, they fill
 * disks, and a stale one is blamed on the nearest program: so `kiln doctor` shows them. */
#ifndef KILN_PROGRAM_DRIVER_CACHES_H
#define KILN_PROGRAM_DRIVER_CACHES_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/pool.h"

typedef struct driver_cache {
    const char *name;
    const char *path;  /* NULL when no home directory is known */
    const char *state; /* "on", "on, empty", "off (POCL_KERNEL_CACHE=0)" */
    bool present;      /* the directory is there */
    uint64_t bytes, files;
} driver_cache;

/* The index-th known cache; false past the last. `out_cache` strings live in the pool; a NULL state
 * means that there was no memory. */
bool driver_cache_get(cli_pool *pool, unsigned index, driver_cache *out_cache);

#endif
