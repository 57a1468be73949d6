/* Opening backends: built in, registered by the program, or named file by file. */
#include "core/runtime/driver.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apis/list.h"
#include "base/log.h"
#include "base/text.h"
#include "core/runtime/memo.h"
#include "hal/registry.h"
#include "store/cache/cache.h"
#include "sys/clock.h"
#include "sys/dylib.h"
#include "sys/file.h"
#include "sys/paths.h"

void kn_report_set(kiln_probe_report *report, const char *backend, kiln_probe_outcome outcome,
                   const char *fix, const char *why_format, ...)
{
    memset(report, 0, sizeof(*report));
    report->outcome = outcome;
    kn_text_put(report->backend, sizeof(report->backend), backend);
    kn_text_put(report->fix, sizeof(report->fix), fix != NULL ? fix : "");
    va_list args;
    va_start(args, why_format);
    (void)vsnprintf(report->why, sizeof(report->why), why_format, args);
    va_end(args);
}

static void invoke_on_worker(void *user, void (*run)(void *call), void *call)
{
    kn_worker_call((kn_worker *)user, run, call);
}

/* A driver that compiles on the worker allocates megabytes there, in small pieces. glibc gives each
 * thread but the first a heap that grows page by page, with a call of the system for each: two
 * thousand of them for llvmpipe's first program, a thirtieth of a start. What a heap has grown to
 * once it grows to again without them; its memory is given back. */
static void reserve_heap(void *user)
{
    enum { BLOCKS = 96, BLOCK_SIZE = 120 << 10 }; /* smaller than what is mapped by itself */
    void *blocks[BLOCKS];
    (void)user;
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(BLOCK_SIZE);
    }
    for (size_t i = 0; i < BLOCKS; i++) { /* the last one gives all of it back at once */
        free(blocks[i]);
    }
}

typedef struct opening {
    kn_driver *driver;
    kiln_probe_report *report;
    kiln_diag *diag;
    kiln_status status;
} opening;

static void open_instance(void *user)
{
    opening *o = (opening *)user;
    o->status = kn_instance_open(&o->driver->in, &o->driver->host, o->report, o->diag);
}

/* Opens the instance, without the drivers that are to be left out. */
static kiln_status open_without(kn_driver *driver, kiln_probe_report *report, kiln_diag *diag)
{
    opening o = {driver, report, diag, KILN_E_UNAVAILABLE};
    char names[KN_LEFT_OUT_SIZE];
    (void)kn_apart_is_preloaded(driver->in.backend->name); /* nobody can tell afterwards */
    if (driver->left_out[0] == '\0') {
        open_instance(&o);
        return o.status;
    }
    kn_apart_describe(driver->left_out, names, sizeof(names));
    if (!kn_apart_call(driver->in.backend->name, driver->left_out, open_instance, &o)) {
        kn_report_set(report, driver->in.backend->name, KILN_PROBE_CRASHED,
                      "update or remove the driver that it registers",
                      "%s crashed or hung when it was probed, and this process cannot exclude it "
                      "from the loader",
                      names);
    } else if (o.status == KILN_OK) {
        const size_t used = strlen(report->why);
        kn_text_putf(report->why + used, sizeof(report->why) - used,
                     "; left out for a crash or a hang: %s", names);
        kn_text_put(report->fix, sizeof(report->fix),
                    "update or remove the driver that was left out");
    }
    return o.status;
}

static kiln_status open_backend(kn_driver *driver, const kiln_backend *backend,
                                struct kiln_cache *cache, bool compile_only,
                                kiln_probe_report *report, kiln_diag *diag)
{
    memset(&driver->in, 0, sizeof(driver->in));
    driver->worker = NULL;
    driver->headers = NULL;
    kn_report_set(report, backend->name, KILN_PROBE_FAILED, NULL, "%s", "");
    driver->in.backend = backend;
    kn_memo_host(cache, &driver->host);
    driver->host.compile_only = compile_only;
    if ((backend->caps & KILN_CAP_ANY_THREAD) == 0) {
        kiln_status status = kn_worker_create(&driver->worker, diag);
        if (status != KILN_OK) {
            kn_report_set(report, backend->name, KILN_PROBE_FAILED, NULL,
                          "its thread cannot be started");
            return status;
        }
        driver->in.invoke = invoke_on_worker;
        driver->in.invoke_user = driver->worker;
        kn_worker_call(driver->worker, reserve_heap, NULL);
    }
    driver->headers = kn_header_memo_create();
    kiln_diag own = KILN_DIAG_INIT;
    uint64_t start = kn_clock_now();
    kiln_status status = open_without(driver, report, &own);
    report->probe_ns = kn_clock_now() - start;
    kn_text_put(report->backend, sizeof(report->backend), backend->name);
    if (status != KILN_OK) {
        if (report->outcome == KILN_PROBE_READY) {
            report->outcome = KILN_PROBE_FAILED;
        }
        if (report->why[0] == '\0') {
            kn_text_put(report->why, sizeof(report->why),
                        own.why[0] != '\0' ? own.why : "it gave no reason");
            kn_text_put(report->fix, sizeof(report->fix), own.fix);
        }
        (void)kiln_diag_set(diag, status, report->fix, backend->name, "%s", report->why);
        kiln_diag_set_vendor_code(diag, own.vendor_code);
        kn_driver_close(driver);
    }
    kiln_diag_clear(&own);
    return status;
}

kiln_status kn_driver_open(kn_driver *driver, const kiln_backend *backend, struct kiln_cache *cache,
                           kiln_probe_report *report, kiln_diag *diag)
{
    kiln_status status = open_backend(driver, backend, cache, false, report, diag);
    if (status == KILN_OK && cache != NULL) {
        kn_cache_load_prepare(cache);
    }
    return status;
}

kiln_status kn_driver_open_compiler(kn_driver *driver, const kiln_backend *backend,
                                    struct kiln_cache *cache, kiln_probe_report *report,
                                    kiln_diag *diag)
{
    return open_backend(driver, backend, cache, true, report, diag);
}

void kn_driver_close(kn_driver *driver)
{
    if (driver->in.backend != NULL) {
        kn_instance_close(&driver->in);
    }
    kn_worker_destroy(driver->worker);
    kn_header_memo_destroy(driver->headers);
    memset(&driver->in, 0, sizeof(driver->in));
    driver->worker = NULL;
    driver->headers = NULL;
}

/* What a file of $KILN_BACKEND_PATH, or a module of kiln's own, has to offer. Its code stays mapped
 * for good: backends are never removed. */
static kiln_status take_backend(const char *path, kn_dylib *library, kiln_probe_outcome *outcome,
                                kiln_diag *diag)
{
    kiln_backend_entry_fn *entry = NULL;
    void *symbol = kn_dylib_symbol(library, "kiln_backend_entry");
    memcpy(&entry, &symbol, sizeof(entry));
    if (entry == NULL) {
        *outcome = KILN_PROBE_SYMBOL_MISSING;
        kn_dylib_close(library);
        return kiln_diag_set(diag, KILN_E_INVALID, "name a kiln backend", path,
                             "it exports no kiln_backend_entry");
    }
    const kiln_backend *backend = entry();
    const bool known = backend != NULL && backend == kn_registry_find(backend->name);
    const kiln_status status = kn_registry_add(backend, library, diag);
    *outcome = KILN_PROBE_FAILED;
    if (status != KILN_OK || known) {
        kn_dylib_close(library);
    }
    return status;
}

/* `who` asked for the file: the variable, or the name of the backend. */
static void register_file(const char *who, const char *name, const char *path, kn_report_fn *failed,
                          void *user)
{
    const char *names[] = {path, NULL};
    kn_dylib *library = NULL;
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_probe_outcome outcome = KILN_PROBE_FAILED;
    kiln_status status = KILN_E_INVALID;
    if (!kn_path_is_absolute(path)) {
        (void)kiln_diag_set(&diag, status, "use an absolute path", path, "the path is relative");
    } else {
        status = kn_dylib_open(names, &library, &outcome, &diag);
    }
    if (status == KILN_OK) {
        status = take_backend(path, library, &outcome, &diag);
    }
    if (status != KILN_OK) {
        kiln_probe_report report;
        kn_report_set(&report, name, outcome, diag.fix, "%s", diag.why);
        kn_text_put(report.library, sizeof(report.library), path);
        kn_log_diag(KILN_LOG_WARN, who, &diag);
        if (failed != NULL) {
            failed(user, &report);
        }
    }
    kiln_diag_clear(&diag);
}

/* The backends that this build has in files of their own; each may be left uninstalled. */
static void register_modules(kn_report_fn *failed, void *user)
{
    for (const char *const *name = kn_module_backends; *name != NULL; name++) {
        char file[64];
        kn_text_putf(file, sizeof(file), "libkiln-%s.so", *name);
        char *path = kn_registry_find(*name) == NULL ? kn_paths_module(file) : NULL;
        if (path != NULL) {
            register_file(*name, *name, path, failed, user);
        } else if (kn_registry_find(*name) == NULL && failed != NULL) {
            kiln_probe_report report;
            kn_report_set(&report, *name, KILN_PROBE_LIBRARY_MISSING,
                          "install it, or set KILN_LIBEXEC to its directory",
                          "%s is not among kiln's modules", file);
            failed(user, &report);
        }
        free(path);
    }
}

void kn_drivers_register(const char *path, kn_report_fn *failed, void *user)
{
    kn_registry_add_builtin(kn_builtin_backends);
    register_modules(failed, user);
    while (path != NULL && *path != '\0') {
        size_t length = strcspn(path, KN_PATH_LIST_SEPARATOR);
        char *file = kn_text_copy_n(path, length);
        path += length + (path[length] != '\0');
        if (file != NULL && file[0] != '\0') {
            register_file("KILN_BACKEND_PATH", kn_path_name(file), file, failed, user);
        }
        free(file);
    }
}
