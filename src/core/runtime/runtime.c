/* The runtime's life: options, cache, backends, devices, and all of it backwards. */
#include "core/runtime/runtime.h"

#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/log.h"
#include "base/text.h"
#include "hal/registry.h"
#include "sized/sized.h"
#include "sys/env.h"

static void add_report(void *user, const kiln_probe_report *report)
{
    kn_listing_add_report((kiln_runtime *)user, report);
}

static bool is_on_request(const kiln_backend *backend, bool hidden)
{
    return (backend->caps & KILN_CAP_ON_REQUEST) != 0 && !hidden;
}

static bool is_asked_for(const kiln_runtime *runtime, const kiln_backend *backend, bool hidden)
{
    return runtime->backend != NULL
               ? kn_request_position(runtime->backend, backend->name) != SIZE_MAX
               : !is_on_request(backend, hidden);
}

/* Opens what was asked for; the others are reported as not asked for. */
static kiln_status open_asked(kiln_runtime *runtime, bool hidden, kiln_diag *diag)
{
    const kiln_backend *backend = NULL;
    kn_ahead ahead = {.count = 0};
    kiln_status status = KILN_OK;
    for (size_t i = 0; (backend = kn_registry_at(i)) != NULL && ahead.count < KN_DRIVERS_MAX; i++) {
        if (is_asked_for(runtime, backend, hidden) &&
            !kn_listing_compiles_apart(runtime, backend)) {
            ahead.backends[ahead.count++] = backend;
        }
    }
    runtime->ahead = &ahead;
    for (size_t i = 0; status == KILN_OK && (backend = kn_registry_at(i)) != NULL; i++) {
        if (is_asked_for(runtime, backend, hidden)) {
            status = kn_listing_add(runtime, backend, i, diag);
        } else if (!is_on_request(backend, hidden)) {
            kiln_probe_report report;
            kn_report_set(&report, backend->name, KILN_PROBE_SKIPPED, NULL, "not asked for");
            kn_listing_add_report(runtime, &report);
        }
    }
    runtime->ahead = NULL;
    free(ahead.children);
    return status;
}

/* Opens the others, since what was asked for is unavailable. */
static kiln_status open_skipped(kiln_runtime *runtime, kiln_diag *diag)
{
    const kiln_backend *backend = NULL;
    kiln_status status = KILN_OK;
    for (size_t i = 0; status == KILN_OK && (backend = kn_registry_at(i)) != NULL; i++) {
        const kiln_probe_report *report = kn_listing_report(runtime, backend->name);
        if (report != NULL && report->outcome == KILN_PROBE_SKIPPED) {
            status = kn_listing_add(runtime, backend, i, diag);
        }
    }
    return status;
}

/* Moves *list to behind its next name that no backend has; false if there is none. */
static bool next_unknown(const char **list, char *name, size_t size)
{
    while (*list != NULL && **list != '\0') {
        const size_t length = strcspn(*list, ",");
        kn_text_putf(name, size, "%.*s", (int)length, *list);
        *list += length + ((*list)[length] == ',');
        if (kn_registry_find(name) == NULL) {
            return true;
        }
    }
    return false;
}

static void report_unknown(kiln_runtime *runtime)
{
    char name[32];
    for (const char *list = runtime->backend; next_unknown(&list, name, sizeof(name));) {
        kiln_probe_report report;
        kn_report_set(&report, name, KILN_PROBE_FAILED, "run `kiln doctor` to list the backends",
                      "this kiln has no backend of this name");
        kn_listing_add_report(runtime, &report);
    }
}

static bool request_met(const kiln_runtime *runtime)
{
    for (size_t i = 0; i < runtime->device_count; i++) {
        if (kn_device_wanted(runtime, runtime->devices[i])) {
            return true;
        }
    }
    for (size_t i = 0; runtime->compile_only && i < runtime->driver_count; i++) {
        const kiln_backend *backend = runtime->drivers[i]->in.backend;
        if ((backend->caps & KILN_CAP_COMPILE_OFFLINE) != 0 && runtime->device == NULL &&
            kn_request_position(runtime->backend, backend->name) != SIZE_MAX) {
            return true;
        }
    }
    return runtime->backend == NULL && runtime->device == NULL;
}

/* Says which request is not met: an error when strict. */
static kiln_status settle_unmet(kiln_runtime *runtime, kiln_diag *diag)
{
    kiln_diag why = KILN_DIAG_INIT;
    kiln_device *device = NULL;
    bool strict = runtime->strict;
    runtime->strict = true; /* for the message that names what was asked for and what there is */
    kiln_status status = kiln_runtime_select(runtime, NULL, 0, &device, &why);
    runtime->strict = strict;
    for (size_t i = 0; i < runtime->report_count; i++) {
        const kiln_probe_report *report = runtime->reports[i];
        size_t used = strlen(why.why);
        if (report->outcome != KILN_PROBE_READY &&
            kn_request_position(runtime->backend, report->backend) != SIZE_MAX) {
            kn_text_putf(why.why + used, sizeof(why.why) - used, "; %s: %s", report->backend,
                         report->why);
        }
    }
    if (strict) {
        kn_diag_move(diag, &why);
    } else {
        char name[32];
        const char *list = runtime->backend;
        if (runtime->device == NULL && next_unknown(&list, name, sizeof(name))) {
            kiln_diag_clear(&why);
            (void)kn_registry_refuse("choosing a device", name, &why);
        }
        kn_log_diag(KILN_LOG_WARN, "continuing with what is available", &why);
        status = open_skipped(runtime, diag);
    }
    kiln_diag_clear(&why);
    return status;
}

/* False when out of memory. */
static bool copy_text(const char *from, char **out_text)
{
    *out_text = from != NULL ? kn_text_copy(from) : NULL;
    return from == NULL || *out_text != NULL;
}

static kiln_status copy_options(kiln_runtime *runtime, const kiln_runtime_options *options,
                                kiln_diag *diag)
{
    runtime->strict = options->strict;
    runtime->isolate_probe = options->isolate_probe;
    runtime->fresh_probe = options->fresh_probe;
    runtime->compile_only = options->compile_only;
    runtime->untuned = options->untuned;
    runtime->probe_ms = options->probe_ms;
    if (!copy_text(options->backend, &runtime->backend) ||
        !copy_text(options->device, &runtime->device) ||
        !copy_text(options->backend_path, &runtime->backend_path) ||
        !copy_text(options->skip_probe, &runtime->skip_probe)) {
        return kn_no_memory(diag, "creating a runtime");
    }
    if (options->cache != NULL) {
        runtime->cache = options->cache;
        return KILN_OK;
    }
    kiln_status status = kiln_cache_create(NULL, &runtime->cache, diag);
    runtime->owns_cache = status == KILN_OK;
    return status;
}

/* "cuda:sm_90" names a target and no device: that is what will be compiled for. */
static void take_target(kiln_runtime *runtime)
{
    uint64_t index = 0;
    char backend[32];
    const char *colon = runtime->device != NULL ? strchr(runtime->device, ':') : NULL;
    if (!runtime->compile_only || colon == NULL || colon[1] == '\0' ||
        kn_text_to_u64(colon + 1, &index)) {
        return;
    }
    kn_text_putf(backend, sizeof(backend), "%.*s", (int)(colon - runtime->device), runtime->device);
    if (kn_registry_find(backend) != NULL) {
        runtime->target = runtime->device;
        runtime->device = NULL;
    }
}

/* One try at finding what was asked for. */
static kiln_status list_devices(kiln_runtime *runtime, bool hidden, kiln_diag *diag)
{
    char name[32];
    const char *list = runtime->backend;
    kn_drivers_register(runtime->backend_path, add_report, runtime);
    take_target(runtime);
    if (runtime->strict && next_unknown(&list, name, sizeof(name))) {
        return kn_registry_refuse("choosing a device", name, diag); /* a device cannot come by it */
    }
    kiln_status status = open_asked(runtime, hidden, diag);
    if (status == KILN_OK) {
        report_unknown(runtime);
        kn_devices_sort(runtime);
        if (!request_met(runtime)) {
            status = settle_unmet(runtime, diag);
            kn_devices_sort(runtime);
        }
    }
    return status;
}

/* True if the device that will be used is what it was remembered as. A caller that asks for a
 * device gets the first one, unless no source of his fits it. */
static bool memory_holds(kiln_runtime *runtime)
{
    kiln_diag why = KILN_DIAG_INIT;
    bool holds = true;
    if (runtime->device_count > 0) {
        kn_driver *driver = runtime->devices[0]->driver;
        holds = kn_driver_wake(runtime, driver, &why) == KILN_OK;
        if (!holds) {
            kn_log_diag(KILN_LOG_INFO, "the remembered probes of the backends are out of date",
                        &why);
        }
    }
    kiln_diag_clear(&why);
    return holds;
}

/* From memory first; what that does not give for certain, a probe of everything does. */
static kiln_status find_devices(kiln_runtime *runtime, bool hidden, kiln_diag *diag)
{
    kiln_diag why = KILN_DIAG_INIT;
    kiln_status status = list_devices(runtime, hidden, &why);
    if (runtime->recalled && status != KILN_E_NOMEM &&
        (status != KILN_OK || !memory_holds(runtime))) {
        kiln_diag_clear(&why);
        kn_listing_clear(runtime);
        runtime->fresh_probe = true;
        status = list_devices(runtime, hidden, &why);
    }
    if (status != KILN_OK) {
        kn_diag_move(diag, &why);
    } else {
        runtime->listed = true;
        runtime->summary = kn_runtime_describe(runtime);
        status = runtime->summary != NULL ? KILN_OK : kn_no_memory(diag, "creating a runtime");
    }
    kiln_diag_clear(&why);
    return status;
}

kiln_status kiln_runtime_create(const kiln_runtime_options *options, kiln_runtime **out_runtime,
                                kiln_diag *diag)
{
    kiln_runtime_options defaults;
    bool hidden = false; /* backends that work on request only are used as if they were asked for */
    *out_runtime = NULL;
    kiln_status status = KILN_OK;
    if (options == NULL) {
        status = kiln_runtime_options_init(&defaults, diag);
        options = &defaults;
    } else {
        options = kn_sized_view(KN_SIZED(kiln_runtime_options), options, &defaults, diag);
        status = options != NULL ? kn_options_check(options, diag) : KILN_E_INVALID;
    }
    if (status == KILN_OK) {
        status = kn_env_bool("KILN_FAKE", &hidden, diag);
    }
    if (status != KILN_OK) {
        return status;
    }
    kiln_runtime *runtime = (kiln_runtime *)calloc(1, sizeof(*runtime));
    if (runtime == NULL) {
        return kn_no_memory(diag, "creating a runtime");
    }
    kn_mutex_init(&runtime->mutex);
    kn_mutex_init(&runtime->drivers_mutex);
    kn_cond_init(&runtime->adopted);
    kn_cond_init(&runtime->capture_hurry);
    kn_map_init(&runtime->programs);
    kn_map_init(&runtime->uses);
    atomic_init(&runtime->capture_stop, false);
    status = copy_options(runtime, options, diag);
    if (status == KILN_OK && options->trace != NULL) {
        status = kn_trace_open(options->trace, &runtime->trace, diag);
    }
    if (status == KILN_OK) {
        status = find_devices(runtime, hidden, diag);
    }
    if (status != KILN_OK) {
        kiln_runtime_destroy(runtime);
        return status;
    }
    kn_log(KILN_LOG_INFO, "%s", runtime->summary);
    *out_runtime = runtime;
    return KILN_OK;
}

void kiln_runtime_destroy(kiln_runtime *runtime)
{
    if (runtime == NULL) {
        return;
    }
    kn_thread_pool_destroy(runtime->pool); /* first: what it runs builds programs */
    if (runtime->finish_captures != NULL) {
        runtime->finish_captures(runtime);
    }
    kn_uses_flush(runtime);
    kn_listing_clear(runtime);
    kn_map_deinit(&runtime->uses);
    kn_map_deinit(&runtime->programs);
    if (runtime->owns_cache) {
        kiln_cache_destroy(runtime->cache);
    }
    kn_trace_close(runtime->trace);
    kn_cond_deinit(&runtime->capture_hurry);
    kn_cond_deinit(&runtime->adopted);
    kn_mutex_deinit(&runtime->drivers_mutex);
    kn_mutex_deinit(&runtime->mutex);
    free(runtime->summary);
    free(runtime->backend_path);
    free(runtime->skip_probe);
    free(runtime->target);
    free(runtime->device);
    free(runtime->backend);
    free(runtime);
}

static void name_thread(void *user)
{
    kn_trace_thread((kn_trace *)user, "compiles in the background");
}

static kiln_status count_jobs(uint64_t *out_jobs, kiln_diag *diag)
{
    const uint64_t room = kn_memory_limit() >> 30;
    *out_jobs = kn_thread_processors();
    *out_jobs = room < *out_jobs ? room : *out_jobs;
    *out_jobs = *out_jobs > 0 ? *out_jobs : 1;
    return kn_env_u64("KILN_COMPILE_JOBS", 1, KN_THREAD_POOL_MAX, out_jobs, diag);
}

kn_thread_pool *kn_runtime_thread_pool(kiln_runtime *runtime, kiln_diag *diag)
{
    uint64_t jobs = 1;
    kn_mutex_lock(&runtime->mutex);
    if (runtime->pool == NULL && count_jobs(&jobs, diag) == KILN_OK) {
        /* Out of memory: the next one who asks may have more luck. */
        (void)kn_thread_pool_create((uint32_t)jobs, name_thread, runtime->trace, &runtime->pool,
                                    diag);
    }
    kn_thread_pool *pool = runtime->pool;
    kn_mutex_unlock(&runtime->mutex);
    return pool;
}

kiln_cache *kiln_runtime_cache(kiln_runtime *runtime)
{
    return runtime->cache;
}

size_t kiln_runtime_report_count(const kiln_runtime *runtime)
{
    return runtime->report_count;
}

const kiln_probe_report *kiln_runtime_get_report(const kiln_runtime *runtime, size_t index)
{
    return index < runtime->report_count ? runtime->reports[index] : NULL;
}

size_t kiln_runtime_device_count(const kiln_runtime *runtime)
{
    return runtime->device_count;
}

kiln_device *kiln_runtime_device(kiln_runtime *runtime, size_t index)
{
    return index < runtime->device_count ? runtime->devices[index] : NULL;
}

const char *kiln_runtime_summary(const kiln_runtime *runtime)
{
    return runtime->summary;
}
