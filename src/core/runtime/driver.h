/* A backend that is open in a runtime: its instance, the thread it wants to be called on, and what
 * it said when it was probed. */
#ifndef KILN_CORE_DRIVER_H
#define KILN_CORE_DRIVER_H

#include <stdatomic.h>

#include "core/runtime/apart.h"
#include "exec/worker.h"
#include "hal/dispatch.h"
#include "headers/header_memo.h"

typedef struct kn_driver {
    kn_instance in;
    kn_worker *worker; /* for a backend without KILN_CAP_ANY_THREAD */
    kiln_host host;    /* what it was lent */
    /* Of all sources that are built for it; NULL without memory, and while it is not awake. */
    kn_header_memo *headers;
    /* False: known from memory alone (recall.h), `in` has no handle. kn_driver_wake opens it. */
    atomic_bool awake;
    char left_out[KN_LEFT_OUT_SIZE]; /* of the drivers behind its loader: apart.h */
    bool broken; /* it could not be opened, or was not what was remembered; under drivers_mutex */
} kn_driver;

/* Opens a backend and fills `report` in every case. The driver is usable only after KILN_OK; a
 * failure has its reason in the report and in diag. `cache` keeps its memos; it may be NULL. */
kiln_status kn_driver_open(kn_driver *driver, const kiln_backend *backend, struct kiln_cache *cache,
                           kiln_probe_report *report, kiln_diag *diag);
/* The same for compiling alone: the backend may leave its driver closed, and list no device. */
kiln_status kn_driver_open_compiler(kn_driver *driver, const kiln_backend *backend,
                                    struct kiln_cache *cache, kiln_probe_report *report,
                                    kiln_diag *diag);
void kn_driver_close(kn_driver *driver);

/* A report's fixed part. */
void kn_report_set(kiln_probe_report *report, const char *backend, kiln_probe_outcome outcome,
                   const char *fix, const char *why_format, ...) KILN_PRINTF(5, 6);

/* Makes every built-in backend and every file of `path` (colon-separated, absolute; NULL: none)
 * known to the registry. `failed` is called with a report for each file that cannot be used. */
typedef void kn_report_fn(void *user, const kiln_probe_report *report);
void kn_drivers_register(const char *path, kn_report_fn *failed, void *user);

#endif
