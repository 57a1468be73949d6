/* What a runtime lists: the devices of backends that were opened now, and of those that are known
 * from an earlier probe (recall.h) and are opened when one of their devices is first used. Who asks
 * for what is runtime.c's. */
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/log.h"
#include "base/text.h"
#include "core/runtime/recall.h"
#include "core/runtime/runtime.h"
#include "hal/registry.h"

static const char creating[] = "creating a runtime"; /* what fails without memory */

kiln_probe_report *kn_listing_report(kiln_runtime *runtime, const char *backend)
{
    for (size_t i = 0; i < runtime->report_count; i++) {
        if (strcmp(runtime->reports[i]->backend, backend) == 0) {
            return runtime->reports[i];
        }
    }
    return NULL;
}

void kn_listing_add_report(kiln_runtime *runtime, const kiln_probe_report *report)
{
    kiln_probe_report *at = kn_listing_report(runtime, report->backend);
    if (at == NULL && runtime->report_count < KN_REPORTS_MAX) {
        at = (kiln_probe_report *)calloc(1, sizeof(*at));
        runtime->reports[runtime->report_count] = at;
        runtime->report_count += at != NULL; /* one that finds no room is left out */
    }
    if (at != NULL) {
        *at = *report;
        at->struct_size = sizeof(*at);
    }
}

/* --- devices ---------------------------------------------------------------------------------- */

static void destroy_device(kiln_device *device)
{
    const kn_instance *in = &device->driver->in;
    if (device->handle != NULL) {
        kn_hal_device_close(in, device->handle);
    }
    if (device->has_target) {
        kn_hal_target_destroy(in, in->handle, &device->target);
    }
    kn_mutex_deinit(&device->mutex);
    free(device);
}

/* Asks the open driver what a device is and what code is made for it. */
static kiln_status ask_device(const kn_driver *driver, uint32_t index, kiln_device_info *out_info,
                              kiln_target *out_target, kiln_diag *diag)
{
    const kn_instance *in = &driver->in;
    memset(out_info, 0, sizeof(*out_info));
    memset(out_target, 0, sizeof(*out_target));
    kiln_status status = kn_hal_device_info(in, in->handle, index, out_info, diag);
    if (status == KILN_OK) {
        out_target->has_device = true;
        out_target->device_index = index;
        status = kn_hal_target_of_device(in, in->handle, index, out_target, diag);
    }
    out_info->struct_size = sizeof(*out_info);
    out_info->index = index;
    kn_text_put(out_info->backend, sizeof(out_info->backend), in->backend->name);
    kn_text_put(out_info->target, sizeof(out_info->target), out_target->name);
    return status;
}

/* Puts a device into the list; there is room. `recalled` NULL: the driver is asked. */
static kiln_status list_device(kiln_runtime *runtime, kn_driver *driver, uint32_t index,
                               const kn_recalled_device *recalled, size_t rank, kiln_diag *diag)
{
    kiln_device *device = (kiln_device *)calloc(1, sizeof(*device));
    if (device == NULL) {
        return kn_no_memory(diag, creating);
    }
    kiln_status status = KILN_OK;
    if (recalled != NULL) {
        device->info = recalled->info;
        device->languages = recalled->languages;
        kn_text_put(device->target.name, sizeof(device->target.name), recalled->info.target);
    } else {
        status = ask_device(driver, index, &device->info, &device->target, diag);
    }
    if (status != KILN_OK) {
        free(device);
        return status;
    }
    device->runtime = runtime;
    device->driver = driver;
    device->rank = rank;
    device->has_target = recalled == NULL;
    kn_mutex_init(&device->mutex);
    runtime->devices[runtime->device_count++] = device;
    return KILN_OK;
}

static kiln_status reserve_devices(kiln_runtime *runtime, uint32_t count, kiln_diag *diag)
{
    if (count == 0) {
        return KILN_OK;
    }
    kiln_device **devices = (kiln_device **)realloc(
        runtime->devices, (runtime->device_count + count) * sizeof(kiln_device *));
    if (devices == NULL) {
        return kn_no_memory(diag, creating);
    }
    runtime->devices = devices;
    return KILN_OK;
}

/* All devices of an open driver. One that cannot be described is left out, and said. */
static kiln_status add_devices(kiln_runtime *runtime, kn_driver *driver, uint32_t count,
                               size_t rank, kiln_diag *diag)
{
    kiln_status status = reserve_devices(runtime, count, diag);
    for (uint32_t i = 0; status == KILN_OK && i < count; i++) {
        kiln_diag why = KILN_DIAG_INIT;
        kiln_status one = list_device(runtime, driver, i, NULL, rank, &why);
        if (one == KILN_E_NOMEM) {
            status = kn_no_memory(diag, creating);
        } else if (one != KILN_OK) {
            kn_log_diag(KILN_LOG_WARN, driver->in.backend->name, &why);
        }
        kiln_diag_clear(&why);
    }
    return status;
}

/* --- memory ----------------------------------------------------------------------------------- */

static uint32_t languages_of(const kiln_device *device)
{
    const kn_instance *in = &device->driver->in;
    uint32_t languages = 0;
    for (int i = KILN_LANG_NONE + 1; i <= KILN_LANG_FAKE; i++) {
        size_t count = 0;
        if (kn_hal_stages(in, in->handle, &device->target, (kiln_language)i, &count) != NULL) {
            languages |= (uint32_t)1 << i;
        }
    }
    return languages;
}

/* Remembers what an open driver listed, or why there is none (`driver` NULL). */
static void remember_probe(const kiln_runtime *runtime, const kiln_backend *backend,
                           const kn_driver *driver, kiln_status status,
                           const kiln_probe_report *report)
{
    kn_recall recall = {.status = status, .report = *report};
    if (!kn_recall_works(runtime->cache, backend)) {
        return;
    }
    if (driver != NULL) {
        kn_text_put(recall.left_out, sizeof(recall.left_out), driver->left_out);
    }
    recall.devices =
        (kn_recalled_device *)calloc(runtime->device_count + 1, sizeof(*recall.devices));
    for (size_t i = 0; driver != NULL && recall.devices != NULL && i < runtime->device_count; i++) {
        const kiln_device *device = runtime->devices[i];
        if (device->driver == driver) {
            kn_recalled_device *to = &recall.devices[recall.device_count++];
            to->info = device->info;
            to->languages = languages_of(device);
        }
    }
    if (recall.devices != NULL) {
        kn_recall_put(runtime->cache, backend, &recall);
    }
    free(recall.devices);
}

/* Lists a backend as it was remembered; *out_known says whether it was. */
static kiln_status add_recalled(kiln_runtime *runtime, const kiln_backend *backend, size_t rank,
                                bool *out_known, kiln_diag *diag)
{
    kn_recall recall;
    kn_driver *driver = NULL;
    const uint64_t start = kn_trace_begin(runtime->trace);
    *out_known = !runtime->fresh_probe && !runtime->isolate_probe &&
                 kn_recall_get(runtime->cache, backend, &recall);
    kn_trace_end(
        runtime->trace, start, "recall",
        &(kn_trace_about){.what = backend->name, .detail = *out_known ? "known" : "unknown"});
    if (!*out_known) {
        return KILN_OK;
    }
    kiln_status status = reserve_devices(runtime, recall.device_count, diag);
    if (status == KILN_OK && recall.status == KILN_OK) {
        driver = (kn_driver *)calloc(1, sizeof(*driver));
        status = driver != NULL ? KILN_OK : kn_no_memory(diag, creating);
    }
    if (driver != NULL) {
        driver->in.backend = backend;
        kn_text_put(driver->left_out, sizeof(driver->left_out), recall.left_out);
        runtime->drivers[runtime->driver_count++] = driver;
    } else if (status == KILN_OK) {
        kn_log(KILN_LOG_INFO, "%s: %s: %s", backend->name,
               kiln_probe_outcome_name(recall.report.outcome), recall.report.why);
    }
    for (uint32_t i = 0; driver != NULL && status == KILN_OK && i < recall.device_count; i++) {
        status = list_device(runtime, driver, recall.devices[i].info.index, &recall.devices[i],
                             rank, diag);
    }
    kn_listing_add_report(runtime, &recall.report);
    runtime->recalled = true;
    kn_recall_deinit(&recall);
    return status;
}

/* --- opening ---------------------------------------------------------------------------------- */

/* A driver that took its process with it is logged, once; the rest are only reported. */
static void tell_unusable(const kiln_backend *backend, const kiln_probe_report *report)
{
    const bool bad =
        report->outcome == KILN_PROBE_CRASHED || report->outcome == KILN_PROBE_TIMED_OUT;
    kn_log(bad ? KILN_LOG_WARN : KILN_LOG_INFO, "%s: %s: %s%s%s%s", backend->name,
           kiln_probe_outcome_name(report->outcome), report->why, bad ? " (" : "",
           bad ? report->fix : "", bad ? ")" : "");
}

bool kn_listing_compiles_apart(const kiln_runtime *runtime, const kiln_backend *backend)
{
    const size_t length = strlen(backend->name);
    return runtime->target != NULL && (backend->caps & KILN_CAP_COMPILE_APART) != 0 &&
           strncmp(runtime->target, backend->name, length) == 0 && runtime->target[length] == ':' &&
           strcmp(runtime->target + length, ":native") != 0;
}

/* The compiler without its driver: nothing of a vendor's runs that could take the process along, so
 * no child looks first. False where there is none. */
static bool add_compiler(kiln_runtime *runtime, const kiln_backend *backend)
{
    kiln_probe_report report;
    kn_driver *driver = (kn_driver *)calloc(1, sizeof(*driver));
    if (driver == NULL ||
        kn_driver_open_compiler(driver, backend, runtime->cache, &report, NULL) != KILN_OK) {
        free(driver);
        return false;
    }
    kn_listing_add_report(runtime, &report);
    atomic_store(&driver->awake, true);
    runtime->drivers[runtime->driver_count++] = driver;
    return true;
}

kiln_status kn_listing_add(kiln_runtime *runtime, const kiln_backend *backend, size_t rank,
                           kiln_diag *diag)
{
    kiln_probe_report report;
    bool known = false;
    if (runtime->driver_count >= KN_DRIVERS_MAX ||
        (kn_listing_compiles_apart(runtime, backend) && add_compiler(runtime, backend))) {
        return KILN_OK;
    }
    kiln_status status = add_recalled(runtime, backend, rank, &known, diag);
    if (known || status != KILN_OK) {
        return status;
    }
    kn_driver *driver = (kn_driver *)calloc(1, sizeof(*driver));
    if (driver == NULL) {
        return kn_no_memory(diag, creating);
    }
    status = kn_probe_open(runtime, backend, true, driver, &report, NULL);
    kn_listing_add_report(runtime, &report);
    if (status != KILN_OK) {
        tell_unusable(backend, &report);
        free(driver);
        remember_probe(runtime, backend, NULL, status, &report);
        return status == KILN_E_NOMEM ? kn_no_memory(diag, creating) : KILN_OK;
    }
    atomic_store(&driver->awake, true);
    runtime->drivers[runtime->driver_count++] = driver;
    status = add_devices(runtime, driver, report.device_count, rank, diag);
    if (status == KILN_OK) {
        remember_probe(runtime, backend, driver, KILN_OK, &report);
    }
    return status;
}

/* What makes a device that device; sizes may have moved. */
static bool is_same_device(const kiln_device_info *a, const kiln_device_info *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->vendor, b->vendor) == 0 &&
           strcmp(a->driver, b->driver) == 0 && strcmp(a->version, b->version) == 0 &&
           strcmp(a->platform, b->platform) == 0 && strcmp(a->target, b->target) == 0 &&
           strcmp(a->uuid, b->uuid) == 0 && a->device_class == b->device_class;
}

/* Fills the targets of a driver that has just been opened, if its devices are those remembered. */
static kiln_status match_devices(kiln_runtime *runtime, const kn_driver *driver, uint32_t listed,
                                 kiln_diag *diag)
{
    uint32_t seen = 0;
    const char *name = driver->in.backend->name;
    for (size_t i = 0; i < runtime->device_count; i++) {
        kiln_device *device = runtime->devices[i];
        kiln_device_info info;
        kiln_target target;
        if (device->driver != driver) {
            continue;
        }
        seen++;
        if (device->info.index >= listed) {
            break;
        }
        kiln_status status = ask_device(driver, device->info.index, &info, &target, diag);
        if (status != KILN_OK) {
            return status;
        }
        device->target = target;
        device->has_target = true;
        if (!is_same_device(&info, &device->info)) {
            return kiln_diag_set(diag, KILN_E_UNAVAILABLE, "start the program again", name,
                                 "device %u is not what was found at the last probe",
                                 (unsigned)info.index);
        }
        if (!runtime->listed) {
            device->info = info; /* nobody has seen it yet */
        }
    }
    return seen == listed ? KILN_OK
                          : kiln_diag_set(diag, KILN_E_UNAVAILABLE, "start the program again", name,
                                          "it lists %u devices, not %u as at the last probe",
                                          (unsigned)listed, (unsigned)seen);
}

static void forget_targets(kiln_runtime *runtime, const kn_driver *driver)
{
    for (size_t i = 0; i < runtime->device_count; i++) {
        kiln_device *device = runtime->devices[i];
        if (device->driver == driver && device->has_target) {
            kn_hal_target_destroy(&driver->in, driver->in.handle, &device->target);
            device->has_target = false;
        }
    }
}

static kiln_status open_recalled(kiln_runtime *runtime, kn_driver *driver, kiln_diag *diag)
{
    const kiln_backend *backend = driver->in.backend;
    kiln_probe_report report;
    const uint64_t start = kn_trace_begin(runtime->trace);
    kiln_status status = kn_driver_open(driver, backend, runtime->cache, &report, diag);
    if (status == KILN_OK) {
        status = match_devices(runtime, driver, report.device_count, diag);
        if (status != KILN_OK) {
            forget_targets(runtime, driver);
            kn_driver_close(driver);
        }
    }
    kn_trace_end(runtime->trace, start, "probe",
                 &(kn_trace_about){.what = backend->name,
                                   .detail = kiln_probe_outcome_name(report.outcome)});
    driver->in.backend = backend; /* a closed one has none */
    if (status != KILN_OK) {
        kn_recall_forget(runtime->cache, backend);
        driver->broken = true;
        return status;
    }
    if (!runtime->listed) {
        kn_listing_add_report(runtime, &report);
    }
    atomic_store_explicit(&driver->awake, true, memory_order_release);
    return KILN_OK;
}

static kiln_status wake_locked(kiln_runtime *runtime, kn_driver *driver, kiln_diag *diag)
{
    if (atomic_load(&driver->awake)) {
        return KILN_OK;
    }
    if (driver->broken) {
        return kiln_diag_set(diag, KILN_E_UNAVAILABLE, "start the program again",
                             driver->in.backend->name, "it is not what it was at the last probe");
    }
    return open_recalled(runtime, driver, diag);
}

kiln_status kn_driver_wake(kiln_runtime *runtime, kn_driver *driver, kiln_diag *diag)
{
    if (atomic_load_explicit(&driver->awake, memory_order_acquire)) {
        return KILN_OK;
    }
    kn_mutex_lock(&runtime->drivers_mutex);
    kiln_status status = wake_locked(runtime, driver, diag);
    kn_mutex_unlock(&runtime->drivers_mutex);
    return status;
}

kn_driver *kn_runtime_driver(kiln_runtime *runtime, const char *name, kiln_diag *diag)
{
    kn_driver *driver = NULL;
    kn_mutex_lock(&runtime->drivers_mutex);
    for (size_t i = 0; driver == NULL && i < runtime->driver_count; i++) {
        if (strcmp(runtime->drivers[i]->in.backend->name, name) == 0) {
            driver = runtime->drivers[i];
        }
    }
    const kiln_backend *backend = kn_registry_find(name);
    if (driver != NULL) {
        driver = wake_locked(runtime, driver, diag) == KILN_OK ? driver : NULL;
    } else if (backend == NULL) {
        (void)kn_registry_refuse("finding a target", name, diag);
    } else if (runtime->driver_count < KN_DRIVERS_MAX) {
        kiln_probe_report report;
        driver = (kn_driver *)calloc(1, sizeof(*driver));
        if (driver == NULL) {
            (void)kn_no_memory(diag, creating);
        } else if (kn_probe_open(runtime, backend, false, driver, &report, diag) == KILN_OK) {
            atomic_store(&driver->awake, true);
            runtime->drivers[runtime->driver_count++] = driver;
        } else {
            free(driver);
            driver = NULL;
        }
    }
    kn_mutex_unlock(&runtime->drivers_mutex);
    return driver;
}

void kn_listing_clear(kiln_runtime *runtime)
{
    for (size_t i = 0; i < runtime->device_count; i++) {
        destroy_device(runtime->devices[i]);
    }
    free(runtime->devices);
    runtime->devices = NULL;
    runtime->device_count = 0;
    for (size_t i = 0; i < runtime->driver_count; i++) {
        kn_driver_close(runtime->drivers[i]);
        free(runtime->drivers[i]);
    }
    runtime->driver_count = 0;
    for (size_t i = 0; i < runtime->report_count; i++) {
        free(runtime->reports[i]);
    }
    runtime->report_count = 0;
    runtime->recalled = false;
}
