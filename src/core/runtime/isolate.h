/* Probing in a child: the program `kiln-probe` is run with a time limit, and prints a report. */
#ifndef KILN_CORE_ISOLATE_H
#define KILN_CORE_ISOLATE_H

#include "core/runtime/apart.h"
#include "kiln/runtime.h"

/* Probes a backend in a child. `backend_path` is handed down (NULL: what the environment says);
 * `limit_ms` 0 means 10 seconds. KILN_OK with a report, also when the child crashed or hung;
 * KILN_E_UNAVAILABLE if the helper program cannot be found or started. Where one of the drivers
 * behind a loader crashed or hung, the others are probed without it: a report of KILN_PROBE_READY
 * holds for a process that opens the backend without what is in `left_out` (apart.h), and names
 * that. */
kiln_status kn_isolate_probe(const char *backend, const char *backend_path, uint32_t limit_ms,
                             kiln_probe_report *out_report, char left_out[KN_LEFT_OUT_SIZE],
                             kiln_diag *diag);

/* Reads what kiln-probe prints: one "name=value" a line. False if that is not a whole report. */
bool kn_isolate_parse(const char *text, kiln_probe_report *out_report);
/* Whether kiln-probe says that it has no backend of that name. */
bool kn_isolate_is_unknown(const char *text);

#endif
