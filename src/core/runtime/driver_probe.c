/* Asking a backend whether it can work: here, or first in a child process, so that a driver that
 * crashes or hangs takes nobody with it. */
#include <string.h>

#include <kiln/unstable/probe.h>

#include "base/log.h"
#include "base/text.h"
#include "core/runtime/isolate.h"
#include "core/runtime/probe_ahead.h"
#include "core/runtime/probe_turn.h"
#include "core/runtime/recall.h"
#include "core/runtime/runtime.h"
#include "hal/registry.h"
#include "sized/sized.h"
#include "store/cache/cache.h"
#include "sys/env.h"

/* Asks the helper program. KILN_OK: go on and open it here; else the report says why not. */
static kiln_status ask_child(kiln_runtime *runtime, const kiln_backend *backend, kn_driver *driver,
                             kiln_probe_report *report, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    if (!kn_ahead_take(runtime, backend, &status, report, driver->left_out)) {
        status = kn_turn_probe(runtime, backend, report, driver->left_out, diag);
    }
    if (status != KILN_OK) {
        /* Without a helper program there is no child to ask; the caller still wants an answer. */
        kn_log_once(runtime->isolate_probe ? KILN_LOG_WARN : KILN_LOG_DEBUG,
                    "%s is probed in this process: no helper for a child", backend->name);
        return KILN_OK;
    }
    if (driver->left_out[0] != '\0') {
        kn_log(KILN_LOG_WARN, "%s: %s (%s)", backend->name, report->why, report->fix);
    }
    /* Without devices a compiler may still be there: what neither crashed nor hung is opened. */
    const bool compiles = (backend->caps & KILN_CAP_COMPILE_OFFLINE) != 0 &&
                          report->outcome != KILN_PROBE_CRASHED &&
                          report->outcome != KILN_PROBE_TIMED_OUT;
    if (report->outcome != KILN_PROBE_READY && !compiles) {
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE, report->fix, backend->name, "%s",
                             report->why);
    }
    return KILN_OK;
}

/* A driver whose probe the caller skips is opened without a child's look, and marked while it is:
 * if the process does not live to see the end of that, the next one asks a child. */
typedef struct unseen_opening {
    bool begun;
    kiln_key key;
    kn_load load;
} unseen_opening;

static bool begin_unseen(kiln_runtime *runtime, const kiln_backend *backend, unseen_opening *unseen)
{
    if (!kn_ahead_skips(runtime, backend) || !kn_recall_key(backend, unseen->key.bytes)) {
        return false;
    }
    unseen->begun = true;
    const bool ended = kn_cache_open_begin(runtime->cache, &unseen->key, &unseen->load);
    if (!ended) {
        kn_log(KILN_LOG_WARN,
               "%s: the last process that opened its driver unseen did not live to see the end of "
               "that; a child process looks at it first",
               backend->name);
    }
    return ended;
}

/* A driver that is remembered as well is opened; one that is remembered as bad is not; one that has
 * not been seen yet, and that others made, has to show itself in a child first. Where nothing can
 * be remembered that would be so at every start, and is done only on request. */
static kiln_status probe_and_open(kiln_runtime *runtime, const kiln_backend *backend, bool unknown,
                                  kn_driver *driver, kiln_probe_report *report, kiln_diag *diag)
{
    kn_recall known;
    memset(&known, 0, sizeof(known));
    const bool remembered = !unknown && !runtime->fresh_probe && !runtime->isolate_probe &&
                            kn_recall_get(runtime->cache, backend, &known);
    unseen_opening unseen = {.begun = false};
    kiln_status status = KILN_OK;
    if (remembered && known.status != KILN_OK) {
        *report = known.report;
        status =
            kiln_diag_set(diag, KILN_E_UNAVAILABLE, report->fix, backend->name, "%s", report->why);
    } else if (kn_ahead_wants_child(runtime, backend, remembered) &&
               !begin_unseen(runtime, backend, &unseen)) {
        status = ask_child(runtime, backend, driver, report, diag);
    }
    if (remembered) {
        kn_text_put(driver->left_out, sizeof(driver->left_out), known.left_out);
    }
    kn_recall_deinit(&known);
    const bool opened = status == KILN_OK;
    if (opened) {
        status = kn_driver_open(driver, backend, runtime->cache, report, diag);
    }
    if (unseen.begun && opened) {
        kn_cache_load_end(runtime->cache, &unseen.key, &unseen.load);
    } else if (unseen.begun) {
        kn_cache_load_cancel(runtime->cache, &unseen.load);
    }
    return status;
}

kiln_status kn_probe_open(kiln_runtime *runtime, const kiln_backend *backend, bool unknown,
                          kn_driver *driver, kiln_probe_report *report, kiln_diag *diag)
{
    const uint64_t start = kn_trace_begin(runtime->trace);
    kiln_status status = probe_and_open(runtime, backend, unknown, driver, report, diag);
    kn_trace_end(runtime->trace, start, "probe",
                 &(kn_trace_about){.what = backend->name,
                                   .detail = kiln_probe_outcome_name(report->outcome)});
    return status;
}

/* The built-in ones, and those that the environment names. */
static void register_all(void)
{
    kn_drivers_register(kn_env_get("KILN_BACKEND_PATH"), NULL, NULL);
}

static kiln_status find_backend(const char *name, const kiln_backend **out_backend, kiln_diag *diag)
{
    register_all();
    *out_backend = name != NULL ? kn_registry_find(name) : NULL;
    if (*out_backend == NULL) {
        return kn_registry_refuse("probing a backend", name != NULL ? name : "", diag);
    }
    return KILN_OK;
}

/* Opens the backend in this process, and asks for its devices. */
static void probe_here(const kiln_backend *backend, kiln_probe_report *report)
{
    kn_driver driver;
    driver.left_out[0] = '\0';
    if (kn_driver_open(&driver, backend, NULL, report, NULL) != KILN_OK) {
        return; /* the report says why */
    }
    for (uint32_t i = 0; i < report->device_count; i++) {
        kiln_device_info info;
        kiln_diag why = KILN_DIAG_INIT;
        memset(&info, 0, sizeof(info));
        if (kn_hal_device_info(&driver.in, driver.in.handle, i, &info, &why) != KILN_OK) {
            kn_text_putf(report->why, sizeof(report->why), "device %u: %s", (unsigned)i, why.why);
            report->outcome = KILN_PROBE_FAILED;
        }
        kiln_diag_clear(&why);
    }
    kn_driver_close(&driver);
}

kiln_status kiln_backend_probe(const char *backend, kiln_probe_report *out_report, kiln_diag *diag)
{
    const kiln_backend *table = NULL;
    kiln_probe_report report;
    kiln_status status = kn_sized_begin(KN_SIZED(kiln_probe_report), out_report, &report, diag);
    if (status == KILN_OK) {
        status = find_backend(backend, &table, diag);
    }
    if (status == KILN_OK) {
        probe_here(table, &report);
        kn_sized_end(KN_SIZED(kiln_probe_report), &report, out_report);
    }
    return status;
}

kiln_status kiln_backend_probe_isolated(const char *backend, uint32_t limit_ms,
                                        kiln_probe_report *out_report, kiln_diag *diag)
{
    const kiln_backend *table = NULL;
    kiln_probe_report report;
    kiln_status status = kn_sized_begin(KN_SIZED(kiln_probe_report), out_report, &report, diag);
    if (status == KILN_OK) {
        status = find_backend(backend, &table, diag);
    }
    if (status == KILN_OK) {
        char left_out[KN_LEFT_OUT_SIZE];
        status = kn_isolate_probe(backend, NULL, limit_ms, &report, left_out, diag);
        kn_sized_end(KN_SIZED(kiln_probe_report), &report, out_report);
    }
    return status;
}

const char *kiln_backend_name(size_t index)
{
    register_all();
    for (int on_request = 0; on_request < 2; on_request++) {
        const kiln_backend *backend = NULL;
        for (size_t i = 0; (backend = kn_registry_at(i)) != NULL; i++) {
            if (((backend->caps & KILN_CAP_ON_REQUEST) != 0) == (on_request != 0) && index-- == 0) {
                return backend->name;
            }
        }
    }
    return NULL;
}
