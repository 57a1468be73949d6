/* What was measured before: its key, looking it up, and building the variant it names. */
#include <string.h>

#include "base/checked.h"
#include "base/diag.h"
#include "base/log.h"
#include "base/stages.h"
#include "base/text.h"
#include "core/build/build.h"
#include "core/runtime/runtime.h"
#include "key/recipe.h"
#include "kiln/cpu.h"
#include "sized/sized.h"
#include "store/cache/cache.h"
#include "sys/dylib.h"
#include "tune/tune.h"

/* --- the key ---------------------------------------------------------------------------------- */

/* A built-in kernel is as old as the module that it is in. */
static void add_builtin(const kiln_source *source, kiln_recipe *recipe)
{
    for (size_t i = 0; i < source->builtin_count; i++) {
        const struct kiln_cpu_kernel *kernel = source->builtin[i];
        const void *address = NULL;
        char path[8];
        char build[128] = "";
        memcpy(&address, &kernel->run, sizeof(address));
        if (!kn_module_of_address(address, path, sizeof(path), build, sizeof(build))) {
            build[0] = '\0';
        }
        kn_recipe_add_string(recipe, "builtin", kernel->name);
        kn_recipe_add_string(recipe, "builtin.module", build);
    }
}

static bool same_text(const kiln_source *a, const kiln_source *b)
{
    return a->length == b->length &&
           (a->text == b->text || memcmp(a->text, b->text, a->length) == 0);
}

/* The source's text; variants that share one have the first one's index. */
static void add_source(const kiln_kernel *kernel, size_t index, kiln_recipe *recipe)
{
    const kiln_source *source = kernel->variants[index].source;
    kiln_source rest = *source;
    for (size_t i = 0; i < index && source->language != KILN_LANG_BUILTIN; i++) {
        const kiln_source *other = kernel->variants[i].source;
        if (other->language == source->language && same_text(other, source)) {
            rest.text = "";
            rest.length = 0;
            kiln_recipe_add_u64(recipe, "source.of", i);
            kn_source_add_to(&rest, recipe);
            return;
        }
    }
    if (source->language == KILN_LANG_BUILTIN) {
        rest.text = "";
        rest.length = 0;
    }
    kn_source_add_to(&rest, recipe);
    add_builtin(source, recipe);
}

static void add_variant(const kiln_kernel *kernel, size_t index, kiln_recipe *recipe)
{
    const kiln_variant *variant = &kernel->variants[index];
    const kiln_launch *launch = &variant->launch;
    char shape[160];
    kn_text_putf(shape, sizeof(shape), "%ux%ux%u %u %u %ux%ux%u", (unsigned)launch->local[0],
                 (unsigned)launch->local[1], (unsigned)launch->local[2],
                 (unsigned)launch->shared_bytes, (unsigned)launch->cooperative,
                 (unsigned)launch->cluster[0], (unsigned)launch->cluster[1],
                 (unsigned)launch->cluster[2]);
    kn_recipe_add_string(recipe, "variant", variant->name);
    add_source(kernel, index, recipe);
    kn_recipe_add_string(recipe, "entry", variant->entry);
    kn_recipe_add_string(recipe, "shape", shape);
}

static void add_device(const kiln_device_info *info, kiln_recipe *recipe)
{
    const struct {
        const char *name, *value;
    } rows[] = {{"backend", info->backend},   {"device", info->name},   {"vendor", info->vendor},
                {"platform", info->platform}, {"driver", info->driver}, {"version", info->version}};
    kiln_recipe_add_u64(recipe, "units", info->compute_units);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        kn_recipe_add_string(recipe, rows[i].name, rows[i].value);
    }
}

kiln_status kn_tune_recipe(const kiln_device *device, const kiln_kernel *kernel,
                           kiln_recipe **out_recipe, kiln_diag *diag)
{
    kiln_status status = kiln_recipe_create(KN_STAGE_AT(tuning), out_recipe, diag);
    if (status != KILN_OK) {
        return status;
    }
    kiln_recipe *recipe = *out_recipe;
    kiln_recipe_set_target(recipe, device->target.name);
    kn_recipe_add_string(recipe, "kernel", kernel->name);
    for (size_t i = 0; i < kernel->size_count; i++) {
        kiln_recipe_add_u64(recipe, "size", kn_tune_bucket(kernel->sizes[i]));
    }
    add_device(&device->info, recipe);
    for (size_t i = 0; i < kernel->variant_count; i++) {
        if (kn_variant_taken(device, &kernel->variants[i])) {
            add_variant(kernel, i, recipe);
        }
    }
    return kn_recipe_end(out_recipe, diag);
}

/* --- looking it up ---------------------------------------------------------------------------- */

/* Sizes in one bucket differ: what fits one need not fit another. */
static bool launch_fits(const kiln_device *device, const kiln_launch *launch)
{
    const bool partial = kn_instance_can(&device->driver->in, KILN_CAP_PARTIAL_GROUPS);
    uint64_t items = 1;
    for (uint32_t i = 0; i < launch->dims && i < 3 && launch->local[0] != 0; i++) {
        const uint64_t local = launch->local[i];
        if (local == 0 || (!partial && launch->global[i] % local != 0)) {
            return false;
        }
        items = local <= UINT32_MAX ? items * local : UINT64_MAX;
        if (device->info.max_group_size != 0 && items > device->info.max_group_size) {
            return false;
        }
    }
    return true;
}

static size_t find_variant(const kiln_device *device, const kiln_kernel *kernel, const char *name)
{
    for (size_t i = 0; i < kernel->variant_count; i++) {
        if (strcmp(kernel->variants[i].name, name) == 0 &&
            kn_variant_taken(device, &kernel->variants[i])) {
            return i;
        }
    }
    return kernel->variant_count;
}

kiln_status kn_tuned_look(kiln_device *device, const kiln_kernel *kernel, bool far,
                          kn_tune_record *out_record, kiln_tune_row *rows, kiln_tuning *out_tuning,
                          kiln_diag *diag)
{
    kiln_recipe *recipe = NULL;
    kiln_blob *blob = NULL;
    kiln_origin origin = KILN_ORIGIN_NONE;
    kiln_status status = kn_tune_recipe(device, kernel, &recipe, diag);
    if (status == KILN_OK) {
        const kiln_key key = kiln_recipe_key(recipe);
        status = kn_cache_glance(device->runtime->cache, &key, NULL, far, &blob, &origin);
    }
    kiln_recipe_destroy(recipe);
    if (status == KILN_OK &&
        !kn_tune_record_read(kn_span_of(kiln_blob_data(blob), kiln_blob_size(blob)), out_record)) {
        status = KILN_MISS; /* of another kiln, or put there by something else */
    }
    if (status == KILN_OK && rows != NULL) {
        kn_tune_rows_read(kn_span_of(kiln_blob_facts(blob), kiln_blob_facts_size(blob)), kernel,
                          rows);
    }
    kiln_blob_release(blob);
    if (status != KILN_OK) {
        return status;
    }
    const size_t variant = find_variant(device, kernel, out_record->variant);
    if (variant == kernel->variant_count ||
        !launch_fits(device, &kernel->variants[variant].launch)) {
        return KILN_MISS;
    }
    *out_tuning = (kiln_tuning){.variant = variant,
                                .known = true,
                                .origin = origin,
                                .ns = out_record->ns,
                                .baseline_ns = out_record->baseline_ns,
                                .flops_per_s = out_record->flops_per_s,
                                .bytes_per_s = out_record->bytes_per_s};
    return KILN_OK;
}

/* The first variant that the device takes: where all compilers are there, the baseline. */
static size_t first_taken(const kiln_device *device, const kiln_kernel *kernel)
{
    size_t index = 0;
    while (index + 1 < kernel->variant_count &&
           !kn_variant_taken(device, &kernel->variants[index])) {
        index++;
    }
    return index;
}

kiln_status kiln_tuned_find(kiln_device *device, const kiln_kernel *kernel, kiln_tuning *out_tuning,
                            kiln_diag *diag)
{
    kn_tune_record record;
    kn_kernel taken;
    kiln_tuning tuning;
    kiln_status status = kn_sized_begin(KN_SIZED(kiln_tuning), out_tuning, &tuning, diag);
    if (status != KILN_OK) {
        return status;
    }
    status = kn_kernel_take(device, kernel, &taken, diag);
    if (status == KILN_OK && device->runtime->untuned) {
        status = KILN_MISS;
    }
    if (status == KILN_OK) {
        status = kn_tuned_look(device, &taken.kernel, false, &record, NULL, &tuning, diag);
    }
    if (status == KILN_OK) {
        tuning.baseline = first_taken(device, &taken.kernel);
        kn_sized_end(KN_SIZED(kiln_tuning), &tuning, out_tuning);
    }
    kn_kernel_drop(&taken);
    return status;
}

/* --- building --------------------------------------------------------------------------------- */

kiln_status kn_tuned_try(kiln_device *device, const kiln_kernel *kernel,
                         const kn_tune_record *record, const kiln_tuning *tuning,
                         const kiln_build_options *options, kiln_program **out_program)
{
    kiln_diag own = KILN_DIAG_INIT;
    kn_build_extra extra = {.expected = record->has_program ? &record->program : NULL};
    const kiln_variant *variant = &kernel->variants[tuning->variant];
    kiln_cache *cache = device->runtime->cache;
    kiln_status status =
        kn_build_program(device, variant->source, options, &extra, out_program, &own);
    if (status == KILN_OK) {
        return KILN_OK;
    }
    if (extra.changed) {
        kn_log_once(KILN_LOG_INFO,
                    "%s: %s was measured with other headers or another compiler; tune it again",
                    kernel->name, variant->name);
    } else {
        kn_log_diag(KILN_LOG_WARN, "a tuned variant cannot be used", &own);
    }
    if (extra.changed || status != KILN_MISS) { /* a miss: only what is cached may be built */
        kn_cache_count(cache, KN_COUNT_tuned_stale, 1);
    }
    kiln_diag_clear(&own);
    return KILN_MISS;
}

/* The first variant that can be built here. */
static kiln_status build_baseline(kiln_device *device, const kiln_kernel *kernel,
                                  const kiln_build_options *options, kiln_program **out_program,
                                  kiln_tuning *tuning, kiln_diag *diag)
{
    kiln_diag kept = KILN_DIAG_INIT;
    kiln_status status = KILN_E_UNSUPPORTED;
    for (size_t i = 0; i < kernel->variant_count; i++) {
        if (!kn_variant_taken(device, &kernel->variants[i])) {
            continue;
        }
        kiln_diag_clear(&kept);
        status =
            kn_build_program(device, kernel->variants[i].source, options, NULL, out_program, &kept);
        if (status != KILN_E_UNAVAILABLE) {
            *tuning = (kiln_tuning){.variant = i, .baseline = i};
            break;
        }
    }
    if (status != KILN_OK) {
        kn_diag_move(diag, &kept);
        return status;
    }
    kiln_diag_clear(&kept);
    return status;
}

/* `kernel` is this library's struct. */
static kiln_status build_tuned(kiln_device *device, const kiln_kernel *kernel,
                               const kiln_build_options *options, kiln_program **out_program,
                               kiln_tuning *out_tuning, kiln_diag *diag)
{
    kn_tune_record record;
    kiln_tuning tuning = {0};
    kiln_status status = KILN_OK;
    kiln_status found = KILN_MISS;
    if (!device->runtime->untuned) {
        found = kn_tuned_look(device, kernel, false, &record, NULL, &tuning, diag);
    }
    if (found != KILN_OK && found != KILN_MISS) {
        return found;
    }
    if (found == KILN_OK) {
        tuning.baseline = first_taken(device, kernel);
        found = kn_tuned_try(device, kernel, &record, &tuning, options, out_program);
    }
    if (found == KILN_OK) {
        kn_cache_count(device->runtime->cache, KN_COUNT_tuned_hits, 1);
    } else {
        status = build_baseline(device, kernel, options, out_program, &tuning, diag);
    }
    *out_tuning = tuning;
    return status;
}

kiln_status kiln_tuned_build(kiln_device *device, const kiln_kernel *kernel,
                             const kiln_build_options *options, kiln_program **out_program,
                             kiln_tuning *out_tuning, kiln_diag *diag)
{
    kn_kernel taken;
    kiln_tuning tuning;
    *out_program = NULL;
    if (out_tuning != NULL &&
        kn_sized_begin(KN_SIZED(kiln_tuning), out_tuning, &tuning, diag) != KILN_OK) {
        return KILN_E_INVALID;
    }
    kiln_status status = kn_kernel_take(device, kernel, &taken, diag);
    if (status == KILN_OK) {
        status = build_tuned(device, &taken.kernel, options, out_program, &tuning, diag);
    }
    if (status == KILN_OK && out_tuning != NULL) {
        kn_sized_end(KN_SIZED(kiln_tuning), &tuning, out_tuning);
    }
    kn_kernel_drop(&taken);
    return status;
}
