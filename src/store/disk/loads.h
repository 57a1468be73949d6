/* Loads that did not end: `<root>/loads`, a page that all processes map (sys/shared_page.h).
 *
 * Who hands an entry's bytes to a driver writes its key into a cell of his own before, and takes it
 * out after. A cell of a process that is gone, as its lock shows, is a load that did not end: the
 * driver crashed on these bytes, or the process was killed while it was at it. Nobody can tell
 * which, so one such load says nothing. After two in a row, without one that ended in between, the
 * entry is barred: its bytes are given to no driver for a day, and again after the next such load.
 *
 * What a load costs is two stores and two calls of the system that touch no file. */
#ifndef KILN_STORE_LOADS_H
#define KILN_STORE_LOADS_H

#include "kiln/cache.h"

#include <stdbool.h>

typedef struct kn_loads kn_loads;

#define KN_LOADS_IN_A_ROW 2u

/* Opens the table of a root that is ours, makes it where there is none, and notes the loads of
 * processes that are gone. NULL where that cannot be: loads are then not watched. */
kn_loads *kn_loads_open(const char *root);
/* Every load of it is over. */
void kn_loads_close(kn_loads *loads);

/* One load. */
typedef struct kn_load {
    uint32_t cell; /* 0: it is not watched */
    bool suspect;  /* the last one did not end */
} kn_load;

/* False: the entry is barred, do not load it: so many loads in a row did not end, the last one
 * within a day. Threads: any. */
bool kn_loads_begin(kn_loads *loads, const kiln_key *key, uint32_t in_a_row, kn_load *out_load);
void kn_loads_end(kn_loads *loads, const kiln_key *key, const kn_load *load);

/* It was not loaded after all: what is known of it stays as it is. */
void kn_loads_cancel(kn_loads *loads, const kn_load *load);

/* The process ends in order: what other threads are loading now is not a driver's fault. */
void kn_loads_leave(kn_loads *loads);

/* Bars nothing any longer. */
void kn_loads_forget(const char *root);

#endif
