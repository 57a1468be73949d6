/* A kernel's list of variants, as this library knows it: taken from a caller of any version, and
 * looked over. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/diag.h"
#include "core/build/build.h"
#include "core/runtime/runtime.h"
#include "key/recipe.h"
#include "sized/sized.h"
#include "tune/tune.h"

bool kn_variant_taken(const kiln_device *device, const kiln_variant *variant)
{
    const kn_instance *in = &device->driver->in;
    size_t count = 0;
    return kn_hal_stages(in, in->handle, &device->target, variant->source->language, &count) !=
           NULL;
}

static kiln_status refuse_kernel(const kiln_kernel *kernel, const char *why, kiln_diag *diag)
{
    return kiln_diag_set(diag, KILN_E_INVALID, NULL,
                         kernel->name != NULL ? kernel->name : "a kernel's variants", "%s", why);
}

/* --- looking it over -------------------------------------------------------------------------- */

static kiln_status check_variant(const kiln_kernel *kernel, size_t index, kiln_diag *diag)
{
    const kiln_variant *variant = &kernel->variants[index];
    const char *why = NULL;
    if (variant->name == NULL || variant->name[0] == '\0' ||
        strlen(variant->name) > KN_TUNE_NAME_MAX) {
        why = "a variant's name is missing, or longer than 255 bytes";
    } else if (variant->entry == NULL || variant->entry[0] == '\0') {
        why = "a variant has no source or no entry";
    }
    for (size_t i = 0; why == NULL && i < index; i++) {
        why = strcmp(kernel->variants[i].name, variant->name) == 0
                  ? "two variants have the same name"
                  : NULL;
    }
    return why != NULL ? refuse_kernel(kernel, why, diag) : kn_source_check(variant->source, diag);
}

static kiln_status check_variants(const kiln_device *device, const kiln_kernel *kernel,
                                  kiln_diag *diag)
{
    bool any = false;
    for (size_t i = 0; i < kernel->variant_count; i++) {
        kiln_status status = check_variant(kernel, i, diag);
        if (status != KILN_OK) {
            return status;
        }
        any = any || kn_variant_taken(device, &kernel->variants[i]);
    }
    return any ? KILN_OK
               : kiln_diag_set(diag, KILN_E_UNSUPPORTED, "add a variant in a language it takes",
                               kernel->name, "%s takes none of its variants", device->info.backend);
}

static bool is_amount(double value)
{
    return isfinite(value) && value >= 0;
}

static kiln_status check_kernel(const kiln_kernel *kernel, kiln_diag *diag)
{
    if (kernel->name == NULL || !kn_name_valid(kernel->name)) {
        return refuse_kernel(kernel, "its name is not 1 to 64 letters, digits, '.', '-', '_'",
                             diag);
    }
    if (kernel->variants == NULL || kernel->variant_count == 0 ||
        kernel->variant_count > KILN_VARIANTS_MAX) {
        return refuse_kernel(kernel, "it has no variants, or more than 64", diag);
    }
    if (kernel->size_count > KILN_SIZES_MAX || (kernel->size_count > 0 && kernel->sizes == NULL)) {
        return refuse_kernel(kernel, "its list of sizes is missing, or has more than 8", diag);
    }
    if (!is_amount(kernel->flops) || !is_amount(kernel->bytes)) {
        return refuse_kernel(kernel, "flops or bytes is negative or not finite", diag);
    }
    return KILN_OK;
}

/* --- taking it -------------------------------------------------------------------------------- */

/* A launch ends its variant: it has grown as much as that, and no more. */
static kiln_status take_variant(kn_kernel *taken, const kiln_variant *given, size_t index,
                                kiln_diag *diag)
{
    const kiln_launch *shape = &given->launch;
    const kiln_kernel *kernel = &taken->kernel;
    kiln_launch room;
    if (shape->struct_size > given->struct_size - offsetof(kiln_variant, launch)) {
        return refuse_kernel(kernel, "a variant's struct_size, or its launch's, is not set", diag);
    }
    shape = kn_sized_view(KN_SIZED(kiln_launch), shape, &room, diag);
    if (shape == NULL) {
        return KILN_E_INVALID;
    }
    taken->variants[index].launch = *shape;
    if (given->source == NULL) {
        return refuse_kernel(kernel, "a variant has no source or no entry", diag);
    }
    taken->variants[index].source =
        kn_sized_view(KN_SIZED(kiln_source), given->source, &taken->sources[index], diag);
    return taken->variants[index].source != NULL ? KILN_OK : KILN_E_INVALID;
}

/* `kernel` is this library's struct; its variants need not be. */
static kiln_status take_variants(kn_kernel *taken, kiln_diag *diag)
{
    const kiln_kernel *kernel = &taken->kernel;
    const void *list = NULL;
    void *copy = NULL;
    kiln_status status = kn_sized_list(KN_SIZED(kiln_variant), kernel->variants,
                                       kernel->variant_count, &list, &copy, diag);
    if (status != KILN_OK) {
        return status;
    }
    taken->variants = (kiln_variant *)calloc(kernel->variant_count, sizeof(kiln_variant));
    taken->sources = (kiln_source *)calloc(kernel->variant_count, sizeof(kiln_source));
    if (taken->variants == NULL || taken->sources == NULL) {
        free(copy);
        return kn_no_memory(diag, kernel->name);
    }
    memcpy(taken->variants, list, kernel->variant_count * sizeof(kiln_variant));
    free(copy);
    const char *at = (const char *)kernel->variants;
    const size_t apart = kernel->variants[0].struct_size;
    for (size_t i = 0; status == KILN_OK && i < kernel->variant_count; i++) {
        status = take_variant(taken, (const kiln_variant *)(const void *)(at + i * apart), i, diag);
    }
    return status;
}

kiln_status kn_kernel_take(kiln_device *device, const kiln_kernel *given, kn_kernel *out_taken,
                           kiln_diag *diag)
{
    kiln_kernel room;
    *out_taken = (kn_kernel){.variants = NULL};
    const kiln_kernel *kernel = kn_sized_view(KN_SIZED(kiln_kernel), given, &room, diag);
    if (kernel == NULL) {
        return KILN_E_INVALID;
    }
    out_taken->kernel = *kernel;
    kiln_status status = check_kernel(kernel, diag);
    if (status == KILN_OK) {
        status = take_variants(out_taken, diag);
    }
    if (status == KILN_OK) {
        out_taken->kernel.variants = out_taken->variants;
        status = kn_driver_wake(device->runtime, device->driver, diag);
    }
    return status == KILN_OK ? check_variants(device, &out_taken->kernel, diag) : status;
}

void kn_kernel_drop(kn_kernel *taken)
{
    free(taken->variants);
    free(taken->sources);
    *taken = (kn_kernel){.variants = NULL};
}
