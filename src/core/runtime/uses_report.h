/* Counting which programs are used, for the store's table (store/disk/use_counts.h): in memory
 * while the runtime lives, in the table when it goes. */
#ifndef KILN_CORE_USES_REPORT_H
#define KILN_CORE_USES_REPORT_H

#include "core/runtime/runtime.h"

/* Counts a program by the key of its first stage; one that has no key (zeros) is not counted. */
void kn_uses_note(kiln_runtime *runtime, const kiln_key *first_key);
void kn_uses_flush(kiln_runtime *runtime);

#endif
