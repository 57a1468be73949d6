/* Counters since an earlier reading. */
#ifndef KILN_PROGRAM_STATS_SINCE_H
#define KILN_PROGRAM_STATS_SINCE_H

#include <kiln/cache.h>
#include <kiln/unstable/counters.h>

/* Takes what `kiln stats --json` wrote to the file from the counters; one that is less now (kiln
 * stats --zero) counts from zero. KILN_E_INVALID with a diag. */
kiln_status stats_since(const char *path, uint64_t counters[KILN_COUNTERS], kiln_diag *diag);

#endif
