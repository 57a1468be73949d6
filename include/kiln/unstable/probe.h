/* Backends one by one, without a runtime, as kiln doctor asks them. */
#ifndef KILN_UNSTABLE_PROBE_H
#define KILN_UNSTABLE_PROBE_H

#include "kiln/device.h"

KILN_BEGIN_DECLS

/* Opens one backend by name in this process, lists its devices, and closes it again.
 * Threads: any.   Blocks: drivers.
 * Owns: *out_report is the caller's struct.
 * Fails: KILN_E_INVALID for an unknown name. A backend that cannot work is KILN_OK with its report.
 */
KILN_API KILN_MUST_CHECK kiln_status kiln_backend_probe(const char *backend,
                                                        kiln_probe_report *out_report,
                                                        kiln_diag *diag);

/* Probes one backend by name, in a child process with a time limit, without creating a runtime.
 * Threads: any.   Blocks: up to `limit_ms` (0: 10 seconds).
 * Owns: *out_report is the caller's struct.
 * Fails: KILN_E_INVALID for an unknown name. A backend that cannot work is KILN_OK with its report.
 */
KILN_API KILN_MUST_CHECK kiln_status kiln_backend_probe_isolated(const char *backend,
                                                                 uint32_t limit_ms,
                                                                 kiln_probe_report *out_report,
                                                                 kiln_diag *diag);

/* Names of the backends this process has, in order of preference; NULL after the last. Backends
 * that work only on request (KILN_CAP_ON_REQUEST) come last.
 * Threads: any.   Blocks: never.   Owns: static strings.   Fails: never. */
KILN_API const char *kiln_backend_name(size_t index);

KILN_END_DECLS

#endif
