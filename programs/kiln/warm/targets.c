/* Reads lists of targets and opens runtimes for them. This file must not know what is done with
 * them. */
#include "warm/targets.h"

#include <stdio.h>
#include <string.h>

#include "cli/diag.h"

char *targets_backend(const char *target, cli_pool *pool)
{
    return pool_text(pool, target, strcspn(target, ":"));
}

char *targets_of_device(const kiln_device *device, cli_pool *pool)
{
    const kiln_device_info *info = kiln_device_get_info(device);
    return pool_format(pool, "%s:%u", info->backend, info->index);
}

/* No device takes the language: a target that needs none does. */
static kiln_status name_target(kiln_language language, kiln_diag *diag)
{
    const char *example = NULL;
#define KN_LANGUAGE(id, name, ending, other, form, backends, target, ...)                          \
    example = language == KILN_LANG_##id ? (target) : example;
#define KN_LANGUAGE_INTERNAL(...)
#include "base/languages.def"
    char fix[64];
    char why[sizeof(diag->why)];
    (void)snprintf(fix, sizeof(fix), "name a target, as --target %s",
                   example != NULL ? example : "");
    (void)snprintf(why, sizeof(why), "%s", diag->why);
    return example == NULL
               ? KILN_E_UNAVAILABLE
               : kiln_diag_set(diag, KILN_E_UNAVAILABLE, fix, "choosing a device", "%s", why);
}

kiln_status targets_choose(kiln_runtime *runtime, const targets_wish *wish,
                           const kiln_source *source, cli_pool *pool, const char **out_target,
                           kiln_diag *diag)
{
    kiln_device *device = NULL;
    *out_target = NULL;
    if (wish->backend != NULL && wish->device == NULL &&
        (wish->arch != NULL || kiln_runtime_device_count(runtime) == 0)) {
        *out_target = wish->arch == NULL ? wish->backend
                                         : pool_format(pool, "%s:%s", wish->backend, wish->arch);
    } else {
        kiln_status status = kiln_runtime_select(runtime, source, 1, &device, diag);
        if (status != KILN_OK) {
            return status == KILN_E_UNAVAILABLE && wish->backend == NULL && wish->device == NULL
                       ? name_target(source->language, diag)
                       : status;
        }
        *out_target = targets_of_device(device, pool);
    }
    return *out_target != NULL ? KILN_OK : diag_no_memory(diag, "--target");
}

static kiln_status add_target(cli_targets *targets, const char *at, size_t length, cli_pool *pool,
                              kiln_diag *diag)
{
    if (targets->count == TARGETS_MAX) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, "--target", "more than %d", TARGETS_MAX);
    }
    char *name = pool_text(pool, at, length);
    if (name == NULL) {
        return diag_no_memory(diag, "--target");
    }
    targets->items[targets->count++] = (cli_target){.name = name};
    return KILN_OK;
}

kiln_status targets_read(const opt_list *list, cli_pool *pool, cli_targets *out_targets,
                         kiln_diag *diag)
{
    memset(out_targets, 0, sizeof(*out_targets));
    for (size_t i = 0; i < list->count; i++) {
        for (const char *at = list->items[i]; *at != '\0';) {
            size_t length = strcspn(at, ",");
            kiln_status status =
                length > 0 ? add_target(out_targets, at, length, pool, diag) : KILN_OK;
            if (status != KILN_OK) {
                return status;
            }
            at += length + (at[length] == ',');
        }
    }
    return out_targets->count > 0
               ? KILN_OK
               : kiln_diag_set(diag, KILN_E_INVALID, "write --target vulkan:spirv,cuda:sm_90",
                               "--target", "is needed: what to compile for");
}

const char *targets_named(const char *target)
{
    const char *colon = strchr(target, ':');
    return colon != NULL && colon[1] != '\0' && strspn(colon + 1, "0123456789") < strlen(colon + 1)
               ? target
               : NULL;
}

static kiln_status open_one(cli_target *target, kiln_cache *cache, cli_pool *pool, kiln_diag *diag)
{
    kiln_runtime_options options = {0};
    kiln_diag own = KILN_DIAG_INIT;
    char line[1536];
    kiln_status status = kiln_runtime_options_init(&options, diag);
    if (status != KILN_OK) {
        return status;
    }
    options.backend = targets_backend(target->name, pool);
    options.device = targets_named(target->name);
    options.strict = true;
    options.compile_only = true;
    options.cache = cache;
    if (options.backend == NULL) {
        return diag_no_memory(diag, target->name);
    }
    status = kiln_runtime_create(&options, &target->runtime, &own);
    if (status == KILN_E_UNAVAILABLE || status == KILN_E_UNSUPPORTED) {
        (void)kiln_diag_format(&own, line, sizeof(line));
        target->reason = pool_text(pool, line, strlen(line));
        target->reason = target->reason != NULL ? target->reason : kiln_status_text(status);
        kiln_diag_clear(&own);
        return KILN_OK;
    }
    diag_move(diag, &own);
    return status;
}

kiln_status targets_open(cli_targets *targets, kiln_cache *cache, cli_pool *pool, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    for (size_t i = 0; status == KILN_OK && i < targets->count; i++) {
        status = open_one(&targets->items[i], cache, pool, diag);
    }
    return status;
}

void targets_close(cli_targets *targets)
{
    for (size_t i = 0; i < targets->count; i++) {
        kiln_runtime_destroy(targets->items[i].runtime);
    }
    targets->count = 0;
}
