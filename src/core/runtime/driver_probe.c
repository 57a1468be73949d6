/* Asking a backend whether it can work: here, or first in a child process, so that a driver that
 * crashes or hangs takes nobody with it.
 *
 * A first start asks the children of all backends that it lists at once, and waits for the slowest
 * of them instead of for one after the other. All children have exited before the first driver is
 * opened in this process: no thread of kiln's reads the environment while a driver may change it.
 */
#include <stdlib.h>
#include <string.h>

#include <kiln/unstable/probe.h>

#include "base/log.h"
#include "base/text.h"
#include "core/runtime/isolate.h"
#include "core/runtime/recall.h"
#include "core/runtime/runtime.h"
#include "hal/registry.h"
#include "sized/sized.h"
#include "store/cache/cache.h"
#include "sys/env.h"

/* --- children --------------------------------------------------------------------------------- */

/* What the child of a backend says: kn_isolate_probe's results. */
typedef struct kn_child {
    const kiln_runtime *runtime;
    const kiln_backend *backend;
    kn_thread *thread; /* NULL: asked by the thread that lists */
    kiln_status status;
    kiln_probe_report report;
    char left_out[KN_LEFT_OUT_SIZE];
} kn_child;

static void run_child(void *user)
{
    kn_child *child = (kn_child *)user;
    const kiln_runtime *runtime = child->runtime;
    const uint64_t start = kn_trace_begin(runtime->trace);
    child->status = kn_isolate_probe(child->backend->name, runtime->backend_path, runtime->probe_ms,
                                     &child->report, child->left_out, NULL);
    kn_trace_end(runtime->trace, start, "probe in a child",
                 &(kn_trace_about){.what = child->backend->name});
}

/* Whether the caller wants no child to look at it first. */
static bool is_skipped(const kiln_runtime *runtime, const kiln_backend *backend)
{
    return !runtime->isolate_probe && !runtime->fresh_probe && runtime->skip_probe != NULL &&
           kn_request_position(runtime->skip_probe, backend->name) != SIZE_MAX;
}

/* Whether a backend has to show itself in a child first. Where nothing can be remembered that would
 * be so at every start, and is done only on request. */
static bool wants_child(const kiln_runtime *runtime, const kiln_backend *backend, bool remembered)
{
    return runtime->isolate_probe ||
           (!remembered && kn_recall_works(runtime->cache, backend) && backend->basis->foreign);
}

/* What is remembered, where it may be looked at; needs kn_recall_deinit in every case. */
static bool recall_backend(const kiln_runtime *runtime, const kiln_backend *backend,
                           kn_recall *out_recall)
{
    memset(out_recall, 0, sizeof(*out_recall));
    return !runtime->fresh_probe && !runtime->isolate_probe &&
           kn_recall_get(runtime->cache, backend, out_recall);
}

/* Less than two are asked when they are listed. */
static void ask_ahead(const kiln_runtime *runtime, kn_ahead *ahead)
{
    size_t count = 0;
    ahead->asked = true;
    kn_child *children = (kn_child *)calloc(ahead->count + 1, sizeof(*children));
    for (size_t i = 0; children != NULL && i < ahead->count; i++) {
        const kiln_backend *backend = ahead->backends[i];
        kn_recall recall;
        const bool remembered = recall_backend(runtime, backend, &recall);
        kn_recall_deinit(&recall);
        if (!is_skipped(runtime, backend) && wants_child(runtime, backend, remembered)) {
            children[count++] = (kn_child){.runtime = runtime, .backend = backend};
        }
    }
    if (count < 2) {
        free(children);
        return;
    }
    for (size_t i = 1; i < count; i++) {
        if (kn_thread_start(run_child, &children[i], &children[i].thread, NULL) != KILN_OK) {
            children[i].thread = NULL;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (children[i].thread == NULL) {
            run_child(&children[i]);
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (children[i].thread != NULL) {
            kn_thread_join(children[i].thread);
        }
    }
    ahead->children = children;
    ahead->child_count = count;
}

/* The child that was asked ahead for this backend, or NULL. The first call asks for all. */
static const kn_child *find_child(const kiln_runtime *runtime, const kiln_backend *backend)
{
    kn_ahead *ahead = runtime->ahead;
    if (ahead != NULL && !ahead->asked && ahead->count > 1) {
        ask_ahead(runtime, ahead);
    }
    for (size_t i = 0; ahead != NULL && i < ahead->child_count; i++) {
        if (ahead->children[i].backend == backend) {
            return &ahead->children[i];
        }
    }
    return NULL;
}

/* Asks the helper program. KILN_OK: go on and open it here; else the report says why not. */
static kiln_status ask_child(kiln_runtime *runtime, const kiln_backend *backend, kn_driver *driver,
                             kiln_probe_report *report, kiln_diag *diag)
{
    kn_child own = {.runtime = runtime, .backend = backend};
    const kn_child *child = find_child(runtime, backend);
    if (child == NULL) {
        run_child(&own);
        child = &own;
    }
    *report = child->report;
    kn_text_put(driver->left_out, sizeof(driver->left_out), child->left_out);
    if (child->status != KILN_OK) {
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

/* --- opening ---------------------------------------------------------------------------------- */

/* A driver whose probe the caller skips is opened without a child's look, and marked while it is:
 * if the process does not live to see the end of that, the next one asks a child. */
typedef struct unseen_opening {
    bool begun;
    kiln_key key;
    kn_load load;
} unseen_opening;

static bool begin_unseen(kiln_runtime *runtime, const kiln_backend *backend, unseen_opening *unseen)
{
    if (!is_skipped(runtime, backend) || !kn_recall_key(backend, unseen->key.bytes)) {
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
 * not been seen yet, and that others made, has to show itself in a child first. */
static kiln_status probe_and_open(kiln_runtime *runtime, const kiln_backend *backend, bool unknown,
                                  kn_driver *driver, kiln_probe_report *report, kiln_diag *diag)
{
    kn_recall known;
    memset(&known, 0, sizeof(known));
    const bool remembered = !unknown && recall_backend(runtime, backend, &known);
    unseen_opening unseen = {.begun = false};
    kiln_status status = KILN_OK;
    if (remembered && known.status != KILN_OK) {
        *report = known.report;
        status =
            kiln_diag_set(diag, KILN_E_UNAVAILABLE, report->fix, backend->name, "%s", report->why);
    } else if (wants_child(runtime, backend, remembered) &&
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

/* --- for who asks about one backend ----------------------------------------------------------- */

/* The built-in ones, and those that the environment names. */
static void register_all(void)
{
    kn_drivers_register(kn_env_get("KILN_BACKEND_PATH"), NULL, NULL);
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

static kiln_status probe_backend(const char *backend, bool isolated, uint32_t limit_ms,
                                 kiln_probe_report *out_report, kiln_diag *diag)
{
    char left_out[KN_LEFT_OUT_SIZE];
    kiln_probe_report report;
    kiln_status status = kn_sized_begin(KN_SIZED(kiln_probe_report), out_report, &report, diag);
    if (status != KILN_OK) {
        return status;
    }
    register_all();
    const kiln_backend *table = backend != NULL ? kn_registry_find(backend) : NULL;
    if (table == NULL) {
        return kn_registry_refuse("probing a backend", backend != NULL ? backend : "", diag);
    }
    if (isolated) {
        status = kn_isolate_probe(backend, NULL, limit_ms, &report, left_out, diag);
    } else {
        probe_here(table, &report);
    }
    kn_sized_end(KN_SIZED(kiln_probe_report), &report, out_report);
    return status;
}

kiln_status kiln_backend_probe(const char *backend, kiln_probe_report *out_report, kiln_diag *diag)
{
    return probe_backend(backend, false, 0, out_report, diag);
}

kiln_status kiln_backend_probe_isolated(const char *backend, uint32_t limit_ms,
                                        kiln_probe_report *out_report, kiln_diag *diag)
{
    return probe_backend(backend, true, limit_ms, out_report, diag);
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
