/* Work in a driver that no program asked for: reading what was compiled, for the next process. A
 * driver may end the process in it; the work is watched, and left out for a day where it did. */
#ifndef KILN_ENGINE_LATE_H
#define KILN_ENGINE_LATE_H

#include "engine/job.h"

/* KILN_MISS: there is nothing to store. */
typedef kiln_status kn_late_fn(void *call, kiln_blob **out_blob, kiln_diag *diag);

/* Calls `read` for a request. KILN_MISS, without words: also where it is left out. */
kiln_status kn_late_read(const kn_request *request, kn_late_fn *read, void *call,
                         kiln_blob **out_blob, kiln_diag *diag);
/* The same, and stores what it gives: the bytes of a KN_OUTCOME_DEFERRED, which took `compile_ns`.
 */
kiln_status kn_late_publish(const kn_request *request, uint64_t compile_ns, kn_late_fn *read,
                            void *call, kiln_diag *diag);

#endif
