/* Sources from files or from the program itself. */
#include "kernel/kernel_build.h"

#include <stdio.h>
#include <stdlib.h>

#include <kiln/cpu.h>

#include "cli/diag.h"
#include "cli/host.h"
#include "kernels/kernels.h"

static const size_t max_source = (size_t)64 << 20;

bool kernel_source_init(const cli_kernel *kernel, const kernel_form *form, kiln_source *out_source,
                        const struct kiln_cpu_kernel **out_builtin)
{
    kiln_source source = KILN_SOURCE_INIT;
    source.language = form->language;
    source.name = form->path != NULL ? form->path : kernel->name;
    source.defines = kernel->defines;
    source.define_count = kernel->define_count;
    source.options = form->options;
    source.option_count = form->option_count;
    source.include_dirs = kernel->include_dirs;
    source.include_dir_count = kernel->include_dir_count;
    source.entries = &form->entry;
    source.entry_count = form->entry != NULL ? 1 : 0;
    if (form->language == KILN_LANG_BUILTIN) {
        *out_builtin = kiln_example_kernel(form->entry);
        source.builtin = out_builtin;
        source.builtin_count = 1;
        if (*out_builtin == NULL) {
            return false;
        }
    }
    *out_source = source;
    return true;
}

/* A form's source with its text and all else that it borrows. */
typedef struct form_source {
    kiln_source source;
    const struct kiln_cpu_kernel *builtin;
    char *text; /* free() it */
    char name[1024];
} form_source;

static kiln_status read_form(const cli_kernel *kernel, const kernel_form *form, form_source *out,
                             kiln_diag *diag)
{
    out->builtin = NULL;
    out->text = NULL;
    if (!kernel_source_init(kernel, form, &out->source, &out->builtin)) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, kernel->name,
                             "the kiln command has no built-in kernel \"%s\"", form->entry);
    }
    kiln_status status = KILN_OK;
    if (form->path != NULL) {
        status = host_read_file(form->path, max_source, &out->text, &out->source.length, diag);
        out->source.text = out->text;
        out->source.name = host_spell(form->path, out->name, sizeof(out->name));
    }
    return status;
}

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
        const kernel_origin *origin = &list->origins[tuning.variant];
        built->form = origin->form;
        built->shape = origin->shape;
        built->entry = origin->entry;
        (void)snprintf(built->variant, sizeof(built->variant), "%s", origin->name);
    }
    kernel_variants_destroy(list);
    if (status == KILN_E_UNSUPPORTED) {
        (void)kiln_diag_set(diag, status, NULL, kernel->name,
                            "has no source in a language that the %s backend takes",
                            kiln_device_properties(device)->backend);
    }
    return status;
}

kiln_status kernel_select_device(kiln_runtime *runtime, const cli_kernel *kernel,
                                 kiln_device **out_device, kiln_diag *diag)
{
    kiln_source sources[KERNEL_MAX_FORMS];
    const struct kiln_cpu_kernel *builtin[KERNEL_MAX_FORMS] = {NULL};
    size_t count = 0;
    for (size_t i = 0; i < kernel->form_count; i++) {
        count += kernel_source_init(kernel, &kernel->forms[i], &sources[count], &builtin[i]);
    }
    return kiln_runtime_select(runtime, sources, count, out_device, diag);
}

kiln_status kernel_build(const cli_kernel *kernel, kiln_device *device,
                         const kiln_build_options *options, kernel_built *out_built,
                         kiln_diag *diag)
{
    kiln_diag kept = KILN_DIAG_INIT; /* why a language that the backend takes did not work out */
    *out_built = (kernel_built){0};
    if (kernel_has_variants(kernel)) {
        return build_tuned(kernel, device, options, out_built, diag);
    }
    for (size_t i = 0; i < kernel->form_count; i++) {
        const kernel_form *form = &kernel->forms[i];
        kiln_diag own = KILN_DIAG_INIT;
        form_source given;
        kiln_status status = read_form(kernel, form, &given, &own);
        if (status == KILN_OK) {
            status =
                kiln_program_build(device, &given.source, 1, options, &out_built->program, &own);
        }
        free(given.text);
        if (status == KILN_E_UNSUPPORTED) {
            kiln_diag_clear(&own);
            continue;
        }
        out_built->form = form;
        out_built->shape = &form->shape;
        if (status == KILN_E_UNAVAILABLE) {
            diag_move(&kept, &own);
            continue;
        }
        kiln_diag_clear(&kept);
        diag_move(diag, &own);
        return status == KILN_OK ? find_entry(kernel, out_built, diag) : status;
    }
    if (kept.status != KILN_OK) {
        diag_move(diag, &kept);
        return KILN_E_UNAVAILABLE;
    }
    return kiln_diag_set(diag, KILN_E_UNSUPPORTED, NULL, kernel->name,
                         "has no source in a language that the %s backend takes",
                         kiln_device_properties(device)->backend);
}
