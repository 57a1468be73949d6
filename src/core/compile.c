/* Compiling for a named target: the walk without a load. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "core/build.h"
#include "core/runtime.h"
#include "hal/registry.h"

/* A target by name, the device it is (or none), and whether it must be destroyed here. */
typedef struct named_target {
    kn_driver *driver;
    kiln_device *device; /* a listed one, whose target is used; or NULL */
    kiln_target own;
    bool owned;
} named_target;

static kiln_device *find_device(kiln_runtime *runtime, const char *backend, uint64_t index)
{
    for (size_t i = 0; i < runtime->device_count; i++) {
        const kiln_device_info *info = &runtime->devices[i]->info;
        if (strcmp(info->backend, backend) == 0 && info->index == index) {
            return runtime->devices[i];
        }
    }
    return NULL;
}

/* `text` is "backend" or "backend:name". No name: the first device, or else what the backend calls
 * "native". */
static kiln_status find_target(kiln_runtime *runtime, const char *text, named_target *out_target,
                               kiln_diag *diag)
{
    char backend[32];
    uint64_t index = 0;
    const char *colon = strchr(text, ':');
    size_t length = colon != NULL ? (size_t)(colon - text) : strlen(text);
    const char *name = colon != NULL ? colon + 1 : "";
    memset(out_target, 0, sizeof(*out_target));
    if (length == 0 || length >= sizeof(backend)) {
        return kiln_diag_set(diag, KILN_E_INVALID, "write cpu:native or opencl:0",
                             "finding a target", "\"%s\" names no backend", text);
    }
    kn_text_putf(backend, sizeof(backend), "%.*s", (int)length, text);
    out_target->driver = kn_runtime_driver(runtime, backend, diag);
    if (out_target->driver == NULL) {
        return kn_registry_find(backend) != NULL ? KILN_E_UNAVAILABLE : KILN_E_INVALID;
    }
    if (name[0] == '\0' || kn_text_to_u64(name, &index)) {
        out_target->device = find_device(runtime, backend, index);
        if (out_target->device != NULL) {
            return KILN_OK;
        }
    }
    const kn_instance *in = &out_target->driver->in;
    if (!kn_instance_can(in, KILN_CAP_COMPILE_OFFLINE)) {
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, "see `kiln devices`", "finding a target",
                             "%s compiles for its devices only, and has no \"%s\"", backend,
                             name[0] != '\0' ? name : "0");
    }
    kiln_status status = kn_hal_target_parse(in, in->handle, name[0] != '\0' ? name : "native",
                                             &out_target->own, diag);
    out_target->owned = status == KILN_OK;
    return status;
}

kiln_status kiln_compile(kiln_runtime *runtime, const char *target, const kiln_source *source,
                         kiln_blob **out_blob, kiln_origin *out_origin, kiln_diag *diag)
{
    named_target found;
    kn_build build;
    void *handle = NULL;
    bool started = false;
    *out_blob = NULL;
    if (out_origin != NULL) {
        *out_origin = KILN_ORIGIN_NONE;
    }
    kiln_status status = find_target(runtime, target, &found, diag);
    if (status == KILN_OK && found.device != NULL) {
        status = kn_device_handle(found.device, &handle, diag);
    }
    if (status == KILN_OK) {
        started = true;
        status = kn_build_init(&build, runtime->cache, found.driver,
                               found.device != NULL ? &found.device->target : &found.own, handle,
                               source, NULL, diag);
    }
    if (status == KILN_OK && build.stage_count == 0) {
        status = kiln_diag_set(diag, KILN_E_UNSUPPORTED, "give source text", target,
                               "there is nothing to compile for %s",
                               kiln_language_name(source->language));
    }
    if (status == KILN_OK) {
        status = kn_build_artifacts(&build, diag);
    }
    if (status == KILN_OK) {
        const kn_stage_run *last = &build.runs[build.stage_count - 1];
        *out_blob = kiln_blob_retain(last->blob);
        if (out_origin != NULL) {
            *out_origin = last->origin;
        }
    }
    if (started) {
        kn_build_deinit(&build);
    }
    if (found.owned) {
        kn_hal_target_destroy(&found.driver->in, found.driver->in.handle, &found.own);
    }
    return status;
}
