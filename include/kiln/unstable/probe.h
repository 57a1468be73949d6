/* What backends said when they were asked whether they can work: those of a runtime, or one by one,
 * as kiln doctor asks them. */
#ifndef KILN_UNSTABLE_PROBE_H
#define KILN_UNSTABLE_PROBE_H

#include "kiln/runtime.h"

KILN_BEGIN_DECLS

/* X(name, text). What a backend said when it was asked whether it can work. */
#define KILN_PROBE_MAP(X)                                                                          \
    X(KILN_PROBE_READY, "ready")                                                                   \
    X(KILN_PROBE_LIBRARY_MISSING, "library missing")                                               \
    X(KILN_PROBE_LIBRARY_UNUSABLE, "library unusable") /* stub, wrong ELF class, unresolved */     \
    X(KILN_PROBE_SYMBOL_MISSING, "symbol missing")                                                 \
    X(KILN_PROBE_DRIVER_TOO_OLD, "driver too old")                                                 \
    X(KILN_PROBE_NO_DEVICE, "no device")                                                           \
    X(KILN_PROBE_NO_PERMISSION, "no permission")                                                   \
    X(KILN_PROBE_FAILED, "failed")                                                                 \
    X(KILN_PROBE_CRASHED, "crashed")                                                               \
    X(KILN_PROBE_TIMED_OUT, "timed out")                                                           \
    X(KILN_PROBE_SKIPPED, "skipped") /* not asked for */

/* One of them. */
typedef enum kiln_probe_outcome {
#define KILN_PROBE_ENUM(name, text) name,
    KILN_PROBE_MAP(KILN_PROBE_ENUM)
#undef KILN_PROBE_ENUM
} kiln_probe_outcome;

/* The outcome's text in KILN_PROBE_MAP.
 * Threads: any.   Blocks: never.   Owns: static string.   Fails: never; "unknown". */
KILN_API const char *kiln_probe_outcome_name(kiln_probe_outcome outcome);

/* One backend's answer. `why` is one sentence, `fix` what to do about it. A backend that fills one
 * leaves struct_size alone. */
typedef struct kiln_probe_report {
    size_t struct_size;
    kiln_probe_outcome outcome;
    char backend[32];
    char library[512]; /* file that was opened, or looked for */
    char version[128]; /* of the library or driver */
    char why[768];
    char fix[512];
    uint32_t device_count;
    uint64_t probe_ns;
    bool remembered; /* from an earlier probe: the backend has not been opened in this process */
} kiln_probe_report;

/* What each backend of a runtime said.
 * Threads: any.   Blocks: never.   Owns: borrowed from the runtime.
 * Fails: never; an index out of range gives NULL. */
KILN_API size_t kiln_runtime_report_count(const kiln_runtime *runtime);
KILN_API const kiln_probe_report *kiln_runtime_get_report(const kiln_runtime *runtime,
                                                          size_t index);

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
