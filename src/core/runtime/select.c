/* Choosing a device: by what was asked for, by class, by the order of backends. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "core/runtime/runtime.h"
#include "sized/sized.h"

size_t kn_request_position(const char *list, const char *backend)
{
    size_t wanted = strlen(backend);
    for (size_t position = 0; list != NULL && *list != '\0'; position++) {
        size_t length = strcspn(list, ",");
        if (length == wanted && memcmp(list, backend, length) == 0) {
            return position;
        }
        list += length + (list[length] == ',');
    }
    return SIZE_MAX;
}

static char lower_character(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool contains_folded(const char *text, const char *part)
{
    for (; *text != '\0'; text++) {
        size_t i = 0;
        while (part[i] != '\0' && lower_character(text[i]) == lower_character(part[i])) {
            i++;
        }
        if (part[i] == '\0') {
            return true;
        }
    }
    return false;
}

/* "1", "opencl:1", or part of a name. */
static bool device_matches(const kiln_device *device, const char *request)
{
    uint64_t index = 0;
    const char *colon = strchr(request, ':');
    if (colon != NULL && kn_text_to_u64(colon + 1, &index)) {
        size_t length = (size_t)(colon - request);
        return strlen(device->info.backend) == length &&
               memcmp(device->info.backend, request, length) == 0 && device->info.index == index;
    }
    if (kn_text_to_u64(request, &index)) {
        return device->info.index == index;
    }
    return contains_folded(device->info.name, request);
}

bool kn_device_wanted(const kiln_runtime *runtime, const kiln_device *device)
{
    if (runtime->backend != NULL &&
        kn_request_position(runtime->backend, device->info.backend) == SIZE_MAX) {
        return false;
    }
    return runtime->device == NULL || device_matches(device, runtime->device);
}

/* Negative if `a` comes first. With a list of backends asked for, its order goes before the class.
 */
static int compare_devices(const void *left, const void *right)
{
    const kiln_device *a = *(kiln_device *const *)left;
    const kiln_device *b = *(kiln_device *const *)right;
    const kiln_runtime *runtime = a->runtime;
    bool a_wanted = kn_device_wanted(runtime, a);
    bool b_wanted = kn_device_wanted(runtime, b);
    if (a_wanted != b_wanted) {
        return a_wanted ? -1 : 1;
    }
    size_t a_asked = kn_request_position(runtime->backend, a->info.backend);
    size_t b_asked = kn_request_position(runtime->backend, b->info.backend);
    if (a_asked != b_asked) {
        return a_asked < b_asked ? -1 : 1;
    }
    if (a->info.device_class != b->info.device_class) {
        return a->info.device_class < b->info.device_class ? -1 : 1;
    }
    if (a->rank != b->rank) {
        return a->rank < b->rank ? -1 : 1;
    }
    return a->info.index < b->info.index ? -1 : a->info.index > b->info.index;
}

void kn_devices_sort(kiln_runtime *runtime)
{
    if (runtime->device_count > 1) {
        qsort(runtime->devices, runtime->device_count, sizeof(kiln_device *), compare_devices);
    }
}

/* By what is remembered of a device whose backend is not open: only then is it worth opening. */
static bool may_take_any(const kiln_device *device, const kiln_source *sources, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if ((device->languages >> (unsigned)sources[i].language & 1u) != 0) {
            return true;
        }
    }
    return count == 0;
}

static bool takes_any(kiln_device *device, const kiln_source *sources, size_t count)
{
    kiln_diag why = KILN_DIAG_INIT;
    kn_driver *driver = device->driver;
    const bool awake = atomic_load_explicit(&driver->awake, memory_order_acquire);
    if (!awake && !may_take_any(device, sources, count)) {
        return false;
    }
    if (kn_driver_wake(device->runtime, driver, &why) != KILN_OK) {
        kn_log_once(KILN_LOG_WARN, "%s is left out: %s", driver->in.backend->name, why.why);
        kiln_diag_clear(&why);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        size_t stages = 0;
        if (kn_hal_stages(&driver->in, driver->in.handle, &device->target, sources[i].language,
                          &stages) != NULL) {
            return true;
        }
    }
    return count == 0;
}

static void append_request(kn_strbuf *line, const kiln_runtime *runtime)
{
    if (runtime->backend == NULL && runtime->device == NULL) {
        kn_strbuf_append_text(line, "any");
    }
    kn_strbuf_append_text(line, runtime->backend != NULL ? runtime->backend : "");
    if (runtime->device != NULL) {
        kn_strbuf_printf(line, "%s\"%s\"", runtime->backend != NULL ? "/" : "", runtime->device);
    }
}

/* "opencl:0", with the name and the class where that is asked for. */
static void append_devices(kn_strbuf *line, const kiln_runtime *runtime, bool names)
{
    for (size_t i = 0; i < runtime->device_count; i++) {
        const kiln_device_info *info = &runtime->devices[i]->info;
        kn_strbuf_printf(line, "%s%s:%u", i > 0 ? ", " : "", info->backend, info->index);
        if (names) {
            kn_strbuf_printf(line, " \"%s\" %s", info->name,
                             kiln_device_class_name(info->device_class));
        }
    }
}

char *kn_runtime_describe(kiln_runtime *runtime)
{
    kn_strbuf line;
    kn_strbuf_init(&line, 0);
    kn_strbuf_append_text(&line, "requested=");
    append_request(&line, runtime);
    kn_strbuf_append_text(&line, " detected=[");
    append_devices(&line, runtime, true);
    if (runtime->device_count > 0) {
        const kiln_device_info *info = &runtime->devices[0]->info;
        kn_strbuf_printf(&line, "] selected=%s:%u", info->backend, info->index);
    } else {
        kn_strbuf_append_text(&line, "] selected=none");
    }
    char *text = kn_strbuf_detach(&line, NULL);
    kn_strbuf_deinit(&line);
    return text;
}

static kiln_status nothing_fits(const kiln_runtime *runtime, const kiln_source *sources,
                                size_t source_count, kiln_diag *diag)
{
    kn_strbuf line;
    const char *fix = "`kiln doctor` says why, and what to install";
    kn_strbuf_init(&line, 0);
    kn_strbuf_append_text(&line, "no device");
    if (runtime->backend != NULL || runtime->device != NULL) {
        kn_strbuf_append_text(&line, source_count > 0 ? " of " : " matches ");
        append_request(&line, runtime);
    } else if (source_count == 0) {
        kn_strbuf_append_text(&line, " was found");
    }
    for (size_t i = 0; i < source_count; i++) {
        kn_strbuf_printf(&line, "%s%s", i == 0 ? " takes source in " : ", ",
                         kiln_language_name(sources[i].language));
    }
    if (runtime->device_count > 0) {
        kn_strbuf_printf(&line, "; found %s", source_count > 0 ? "" : "[");
        append_devices(&line, runtime, source_count == 0);
        kn_strbuf_append_text(&line, source_count > 0 ? "" : "]");
        fix = source_count > 0 ? "give the source in a language that one of them takes, too"
                               : "name one of these, as opencl:0 or by a part of its name, with "
                                 "--device or KILN_DEVICE; `kiln doctor` says why others are "
                                 "missing";
    }
    (void)kiln_diag_set(diag, KILN_E_UNAVAILABLE, fix, "choosing a device", "%s",
                        kn_strbuf_text(&line));
    kn_strbuf_deinit(&line);
    return KILN_E_UNAVAILABLE;
}

static kiln_status choose_device(kiln_runtime *runtime, const kiln_source *sources,
                                 size_t source_count, kiln_device **out_device, kiln_diag *diag)
{
    kiln_device *fallback = NULL;
    for (size_t i = 0; i < runtime->device_count; i++) {
        kiln_device *device = runtime->devices[i];
        if (!takes_any(device, sources, source_count)) {
            continue;
        }
        if (kn_device_wanted(runtime, device)) {
            *out_device = device;
            return KILN_OK;
        }
        fallback = fallback != NULL ? fallback : device;
    }
    if (fallback == NULL || runtime->strict) {
        return nothing_fits(runtime, sources, source_count, diag);
    }
    kn_log_once(KILN_LOG_WARN, "the requested backend %s, device %s is unavailable: using %s",
                runtime->backend != NULL ? runtime->backend : "any",
                runtime->device != NULL ? runtime->device : "any", fallback->info.name);
    *out_device = fallback;
    return KILN_OK;
}

kiln_status kiln_runtime_select(kiln_runtime *runtime, const kiln_source *sources,
                                size_t source_count, kiln_device **out_device, kiln_diag *diag)
{
    const void *list = NULL;
    void *copy = NULL;
    *out_device = NULL;
    kiln_status status =
        kn_sized_list(KN_SIZED(kiln_source), sources, source_count, &list, &copy, diag);
    if (status == KILN_OK) {
        status = choose_device(runtime, (const kiln_source *)list, source_count, out_device, diag);
    }
    free(copy);
    return status;
}
