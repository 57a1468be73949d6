/* The JSON of `kiln report`, which is also the data of its page: docs/reference/formats.md,
 * "Report". NULL when memory ran out. */
#ifndef KILN_PROGRAM_PAGE_REPORT_JSON_H
#define KILN_PROGRAM_PAGE_REPORT_JSON_H

#include <jansson.h>

#include <kiln/cache.h>
#include <kiln/unstable/recording.h>

#include "page/holdings.h"
#include "page/metrics.h"

/* One cache. */
json_t *report_cache_json(const holdings *held);
/* A recording, and which of its programs `cache` has. */
json_t *report_recording_json(const char *path, const kiln_recording *recording, kiln_cache *cache);
/* The caches of many machines. */
json_t *report_fleet_json(const metrics_set *set);

#endif
