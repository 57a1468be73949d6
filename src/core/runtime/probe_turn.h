/* One child for all processes that need the same answer at the same time: the first asks
 * kiln-probe, the others wait for its result (recall.h), and open the driver when the child has
 * exited. A crowd that starts cold probes each driver in one child, and not in one a process. */
#ifndef KILN_CORE_PROBE_TURN_H
#define KILN_CORE_PROBE_TURN_H

#include "core/runtime/runtime.h"

/* kn_isolate_probe with the runtime's options, or the result of another process's child. Who asked
 * for a probe of his own (fresh_probe, isolate_probe) gets one. Blocks: as long as a probe may
 * take, and as long again where the other has not ended by then. */
kiln_status kn_turn_probe(const kiln_runtime *runtime, const kiln_backend *backend,
                          kiln_probe_report *out_report, char left_out[KN_LEFT_OUT_SIZE],
                          kiln_diag *diag);

#endif
