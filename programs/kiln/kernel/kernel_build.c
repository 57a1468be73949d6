/* Builds one form after the other, or the one that was tuned. */
#include "kernel/kernel_build.h"

#include <stdio.h>

#include <kiln/unstable/reflect.h>

#include "cli/diag.h"
#include "kernel/kernel_source.h"
#include "kernel/kernel_variants.h"

static kiln_status find_entry(const cli_kernel *kernel, kernel_built *built, kiln_diag *diag)
{
    size_t count = kiln_program_entry_count(built->program);
    built->entry = built->form->entry;
    if (built->entry == NULL && count == 1) {
        built->entry = kiln_program_entry(built->program, 0);
    }
    if (built->entry != NULL) {
        return KILN_OK;
    }
    char names[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < count && used < sizeof(names) - 1; i++) {
        int length = snprintf(names + used, sizeof(names) - used, "%s%s", i > 0 ? ", " : "",
                              kiln_program_entry(built->program, i));
        used += length > 0 ? (size_t)length : 0;
    }
    if (count == 0) {
        return kiln_diag_set(diag, KILN_E_INVALID, "give --entry", kernel->name,
                             "its kernels cannot be listed");
    }
    return kiln_diag_set(diag, KILN_E_INVALID, "give --entry", kernel->name, "has %zu kernels: %s",
                         count, names);
}

static kiln_status refuse_languages(const cli_kernel *kernel, kiln_device *device, kiln_diag *diag)
{
    return kiln_diag_set(diag, KILN_E_UNSUPPORTED, NULL, kernel->name,
                         "has no source in a language that the %s backend takes",
                         kiln_device_get_info(device)->backend);
}

static kiln_status build_tuned(const cli_kernel *kernel, kiln_device *device,
                               const kiln_build_options *options, kernel_built *built,
                               kiln_diag *diag)
{
    kernel_variants *list = NULL;
    kiln_tuning tuning = {.struct_size = sizeof(tuning)};
    kiln_status status = kernel_variants_create(kernel, &list, diag);
    if (status == KILN_OK) {
        status = kiln_tuned_build(device, &list->kernel, options, &built->program, &tuning, diag);
    }
    if (status == KILN_OK) {
        built->form = list->sources[tuning.variant].form;
        built->entry = built->form->entry;
    }
    kernel_variants_destroy(list);
    return status == KILN_E_UNSUPPORTED ? refuse_languages(kernel, device, diag) : status;
}

kiln_status kernel_select_device(kiln_runtime *runtime, const cli_kernel *kernel,
                                 kiln_device **out_device, kiln_diag *diag)
{
    kiln_source sources[KILN_VARIANTS_MAX];
    for (size_t i = 0; i < kernel->form_count; i++) {
        sources[i] = (kiln_source)KILN_SOURCE_INIT;
        sources[i].language = kernel->forms[i].language;
    }
    return kiln_runtime_select(runtime, sources, kernel->form_count, out_device, diag);
}

static kiln_status build_form(const cli_kernel *kernel, const kernel_form *form,
                              kiln_device *device, const kiln_build_options *options,
                              kiln_program **out_program, kiln_diag *diag)
{
    kernel_source given;
    kiln_status status = kernel_source_read(kernel, form, &given, diag);
    if (status == KILN_OK) {
        status = kiln_program_build(device, &given.source, 1, options, out_program, diag);
    }
    kernel_source_deinit(&given);
    return status;
}

kiln_status kernel_build(const cli_kernel *kernel, kiln_device *device,
                         const kiln_build_options *options, kernel_built *out_built,
                         kiln_diag *diag)
{
    kiln_status status = KILN_E_UNSUPPORTED;
    *out_built = (kernel_built){0};
    if (kernel->variant_count > 0) {
        return build_tuned(kernel, device, options, out_built, diag);
    }
    for (size_t i = 0; i < kernel->form_count; i++) {
        const kernel_form *form = &kernel->forms[i];
        kiln_diag own = KILN_DIAG_INIT;
        kiln_status one = build_form(kernel, form, device, options, &out_built->program, &own);
        if (one == KILN_E_UNSUPPORTED) {
            kiln_diag_clear(&own);
            continue;
        }
        out_built->form = form;
        diag_move(diag, &own); /* why a language that the backend takes did not work out */
        status = one;
        if (status != KILN_E_UNAVAILABLE) {
            return status == KILN_OK ? find_entry(kernel, out_built, diag) : status;
        }
    }
    return status == KILN_E_UNSUPPORTED ? refuse_languages(kernel, device, diag) : status;
}
