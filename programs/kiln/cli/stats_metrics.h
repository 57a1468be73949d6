/* The cache's counters as OpenMetrics text, for Prometheus' textfile collector and its like. */
#ifndef KILN_PROGRAM_STATS_METRICS_H
#define KILN_PROGRAM_STATS_METRICS_H

#include <stdint.h>
#include <stdio.h>

#include <kiln/cache.h>

#include "cli/bypasses.h"

/* `counters` has KILN_COUNTERS values; times are in seconds; `root` becomes the label of all
 * samples, and `time_ns` (since 1970) their timestamp, unless it is 0. */
void stats_print_metrics(FILE *file, const char *root, int64_t time_ns, uint64_t entries,
                         uint64_t bytes, const uint64_t *counters, const cli_bypasses *bypasses);

#endif
