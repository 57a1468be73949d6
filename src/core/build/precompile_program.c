/* Compiling for a named target: the build without a load. */
#include "core/build/plan.h"

#include <stdlib.h>
#include <string.h>

#include <kiln/unstable/compile.h>

#include "base/text.h"
#include "core/build/build.h"
#include "core/runtime/runtime.h"
#include "hal/registry.h"
#include "sized/sized.h"
#include "sys/clock.h"

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
static kiln_status find_target(kiln_runtime *runtime, const char *text, kn_plan *out_plan,
                               kiln_diag *diag)
{
    char backend[32];
    uint64_t index = 0;
    const char *colon = strchr(text, ':');
    size_t length = colon != NULL ? (size_t)(colon - text) : strlen(text);
    const char *name = colon != NULL ? colon + 1 : "";
    if (length == 0 || length >= sizeof(backend)) {
        return kiln_diag_set(diag, KILN_E_INVALID, "write cpu:native or opencl:0",
                             "finding a target", "\"%s\" is not the name of a backend", text);
    }
    kn_text_putf(backend, sizeof(backend), "%.*s", (int)length, text);
    out_plan->driver = kn_runtime_driver(runtime, backend, diag);
    if (out_plan->driver == NULL) {
        return kn_registry_find(backend) != NULL ? KILN_E_UNAVAILABLE : KILN_E_INVALID;
    }
    if (name[0] == '\0' || kn_text_to_u64(name, &index)) {
        out_plan->device = find_device(runtime, backend, index);
        if (out_plan->device != NULL) {
            return KILN_OK;
        }
    }
    const kn_instance *in = &out_plan->driver->in;
    if (!kn_instance_can(in, KILN_CAP_COMPILE_OFFLINE)) {
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED,
                             "name one that `kiln devices` lists, as opencl:0", "finding a target",
                             "%s compiles for its devices only, and has no \"%s\"", backend,
                             name[0] != '\0' ? name : "0");
    }
    kiln_status status = kn_hal_target_parse(in, in->handle, name[0] != '\0' ? name : "native",
                                             &out_plan->own, diag);
    out_plan->owned = status == KILN_OK;
    return status;
}

kiln_status kn_plan_open(kiln_runtime *runtime, const char *target, const kiln_source *source,
                         const kiln_build_options *options, kn_plan *out_plan, kiln_diag *diag)
{
    void *handle = NULL;
    memset(out_plan, 0, sizeof(*out_plan));
    kiln_status status = find_target(runtime, target, out_plan, diag);
    if (status == KILN_OK && out_plan->device != NULL) {
        status = kn_device_handle(out_plan->device, &handle, diag);
    }
    if (status == KILN_OK) {
        out_plan->started = true;
        status =
            kn_build_init(&out_plan->build, runtime->cache, out_plan->driver,
                          out_plan->device != NULL ? &out_plan->device->target : &out_plan->own,
                          handle, source, options, diag);
        out_plan->build.trace = runtime->trace;
        out_plan->build.on = out_plan->device;
    }
    if (status == KILN_OK && out_plan->build.stage_count == 0) {
        status = kiln_diag_set(diag, KILN_E_UNSUPPORTED, "give source text", target,
                               "there is nothing to compile for %s",
                               kiln_language_name(source->language));
    }
    return status;
}

void kn_plan_close(kn_plan *plan)
{
    if (plan->started) {
        kn_build_deinit(&plan->build);
    }
    if (plan->owned) {
        kn_hal_target_destroy(&plan->driver->in, plan->driver->in.handle, &plan->own);
    }
}

kiln_status kiln_compile_measured(kiln_runtime *runtime, const char *target,
                                  const kiln_source *source, kiln_blob **out_blob,
                                  kiln_build_info *out_info, kiln_diag *diag)
{
    kn_plan plan;
    kiln_build_info info;
    const uint64_t start = kn_clock_now();
    *out_blob = NULL;
    kiln_status status = kn_sized_begin(KN_SIZED(kiln_build_info), out_info, &info, diag);
    if (status != KILN_OK) {
        return status;
    }
    status = kn_plan_open(runtime, target, source, NULL, &plan, diag);
    if (status == KILN_OK) {
        status = kn_build_artifacts(&plan.build, diag);
    }
    if (status == KILN_OK) {
        const kn_stage_run *last = &plan.build.runs[plan.build.stage_count - 1];
        *out_blob = kiln_blob_retain(last->blob);
        info = plan.build.info;
        info.origin = last->origin;
        info.key = last->key;
        info.total_ns = kn_clock_now() - start;
    }
    info.log = ""; /* the artifact's goes with the build */
    kn_sized_end(KN_SIZED(kiln_build_info), &info, out_info);
    kn_plan_close(&plan);
    return status;
}

kiln_status kiln_compile(kiln_runtime *runtime, const char *target, const kiln_source *source,
                         kiln_blob **out_blob, kiln_origin *out_origin, kiln_diag *diag)
{
    kiln_build_info info = {.struct_size = sizeof(info)};
    kiln_status status = kiln_compile_measured(runtime, target, source, out_blob, &info, diag);
    if (out_origin != NULL) {
        *out_origin = info.origin;
    }
    return status;
}
