/* Reads the OpenMetrics text that `kiln stats --openmetrics` prints, alone or among other metrics,
 * and what a timer has appended of it: several expositions in one file, each with its end. */
#ifndef KILN_PROGRAM_PAGE_METRICS_H
#define KILN_PROGRAM_PAGE_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kiln/cache.h>
#include <kiln/unstable/counters.h>

#include "cli/pool.h"

/* The counters of one cache at one time. */
typedef struct metrics_point {
    double time; /* seconds since 1970; NAN: the samples have none */
    uint64_t counters[KILN_COUNTERS];
    uint64_t entries, bytes;
} metrics_point;

/* One cache of one file: samples with the same labels. */
typedef struct metrics_series {
    const char *file;      /* its name without directories */
    const char *labels;    /* as they are written */
    metrics_point *points; /* in the order of time; at least one */
    size_t count, capacity;
} metrics_series;

typedef struct metrics_set {
    cli_pool *pool;
    metrics_series *series;
    size_t count, capacity;
} metrics_set;

#define METRICS_MOST ((size_t)64 << 20) /* bytes of a file */

/* Adds what the file at `path` holds. KILN_E_INVALID with the file and the line: it is cut, is not
 * OpenMetrics, or holds nothing of kiln's. */
kiln_status metrics_read(metrics_set *set, const char *path, kiln_diag *diag);
/* The same of `text`, which ends with a NUL and is changed. */
kiln_status metrics_parse(metrics_set *set, const char *path, char *text, size_t size,
                          kiln_diag *diag);

#endif
