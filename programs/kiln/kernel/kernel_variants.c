/* The list, and the files behind it. */
#include "kernel/kernel_variants.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/host.h"
#include "kernel/expression.h"
#include "kernel/kernel_build.h"
#include "kernel/kernel_data.h"
#include "kernel/kernel_launch.h"

static const size_t max_source = (size_t)64 << 20;

bool kernel_has_variants(const cli_kernel *kernel)
{
    for (size_t i = 0; i < kernel->form_count; i++) {
        if (kernel->forms[i].variant_count > 0) {
            return true;
        }
    }
    return false;
}

static kiln_status find_file(kernel_variants *list, const char *path, kernel_file **out_file,
                             kiln_diag *diag)
{
    for (size_t i = 0; i < list->file_count; i++) {
        if (strcmp(list->files[i].path, path) == 0) {
            *out_file = &list->files[i];
            return KILN_OK;
        }
    }
    kernel_file *file = &list->files[list->file_count];
    file->path = path;
    file->spelled = host_spell(path, file->buffer, sizeof(file->buffer));
    *out_file = file;
    kiln_status status = host_read_file(path, max_source, &file->text, &file->length, diag);
    list->file_count += status == KILN_OK;
    return status;
}

/* Adds a form (`variant` NULL) or one of its variants. */
static kiln_status add_listed_variant(kernel_variants *list, const cli_kernel *kernel,
                                      const kernel_form *form, const kernel_variant *variant,
                                      kiln_diag *diag)
{
    size_t index = list->kernel.variant_count;
    kernel_origin *origin = &list->origins[index];
    kiln_source *source = &list->sources[index];
    const char *path = variant != NULL ? variant->path : form->path;
    origin->form = form;
    origin->shape = variant != NULL ? &variant->shape : &form->shape;
    (void)snprintf(origin->name, sizeof(origin->name), "%s%s%s", kiln_language_name(form->language),
                   variant != NULL ? "/" : "", variant != NULL ? variant->name : "");
    kernel_form one = *form;
    if (variant != NULL) {
        one.path = variant->path;
        one.entry = variant->entry;
        one.options = variant->options;
        one.option_count = variant->option_count;
    }
    if (!kernel_source_init(kernel, &one, source, &origin->builtin)) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, kernel->name,
                             "the kiln command has no built-in kernel \"%s\"", one.entry);
    }
    origin->entry = one.entry;
    source->entries = &origin->entry;
    if (variant != NULL) {
        source->defines = variant->defines;
        source->define_count = variant->define_count;
    }
    if (path != NULL) {
        kernel_file *file = NULL;
        kiln_status status = find_file(list, path, &file, diag);
        if (status != KILN_OK) {
            return status;
        }
        source->text = file->text;
        source->length = file->length;
        source->name = file->spelled;
    }
    list->variants[index] = (kiln_variant){.struct_size = sizeof(kiln_variant),
                                           .name = origin->name,
                                           .source = source,
                                           .entry = origin->entry};
    kernel_shape_to_launch(origin->shape, &list->variants[index].launch);
    list->kernel.variant_count++;
    return KILN_OK;
}

static kiln_status evaluate_amount(const cli_kernel *kernel, const char *text, double *out_value,
                                   kiln_diag *diag)
{
    expression_error error = {0};
    if (!expression_evaluate(text, kernel, out_value, &error)) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, kernel->name, "\"%.80s\": %s", text,
                             error.why);
    }
    return KILN_OK;
}

/* What a launch moves at least: what is read, and what is written. */
static double least_bytes(const cli_kernel *kernel)
{
    double bytes = 0;
    for (size_t i = 0; i < kernel->arg_count; i++) {
        const kernel_arg *arg = &kernel->args[i];
        if (kernel_is_buffer(arg) && arg->type != DATA_TYPE_COUNT) {
            double size = (double)arg->count * (double)data_type_size(arg->type);
            bytes += arg->access == KERNEL_INOUT ? 2 * size : size;
        }
    }
    return bytes;
}

static kiln_status add_amounts(kernel_variants *list, const cli_kernel *kernel, kiln_diag *diag)
{
    const kernel_shape *shape = &kernel->forms[0].shape;
    kiln_status status = KILN_OK;
    list->kernel.sizes = list->sizes;
    list->kernel.size_count = kernel->size_count > 0 ? kernel->size_count : shape->dims;
    for (size_t i = 0; i < kernel->size_count && status == KILN_OK; i++) {
        double size = 0;
        status = evaluate_amount(kernel, kernel->sizes[i], &size, diag);
        list->sizes[i] = size < 0x1p63 ? (uint64_t)ceil(size) : (uint64_t)1 << 63;
    }
    for (size_t i = 0; i < shape->dims && kernel->size_count == 0; i++) {
        list->sizes[i] = shape->global[i];
    }
    if (status == KILN_OK && kernel->flops != NULL) {
        status = evaluate_amount(kernel, kernel->flops, &list->kernel.flops, diag);
    }
    list->kernel.bytes = least_bytes(kernel);
    if (status == KILN_OK && kernel->bytes != NULL) {
        status = evaluate_amount(kernel, kernel->bytes, &list->kernel.bytes, diag);
    }
    return status;
}

kiln_status kernel_variants_create(const cli_kernel *kernel, kernel_variants **out_list,
                                   kiln_diag *diag)
{
    kernel_variants *list = calloc(1, sizeof(*list));
    *out_list = NULL;
    if (list == NULL) {
        return kiln_diag_set(diag, KILN_E_NOMEM, NULL, kernel->name, "no memory for its variants");
    }
    list->kernel.struct_size = sizeof(list->kernel);
    list->kernel.name = kernel->name;
    list->kernel.variants = list->variants;
    kiln_status status = KILN_OK;
    for (size_t i = 0; i < kernel->form_count && status == KILN_OK; i++) {
        const kernel_form *form = &kernel->forms[i];
        status = add_listed_variant(list, kernel, form, NULL, diag);
        for (size_t j = 0; j < form->variant_count && status == KILN_OK; j++) {
            status = add_listed_variant(list, kernel, form, &form->variants[j], diag);
        }
    }
    if (status == KILN_OK) {
        status = add_amounts(list, kernel, diag);
    }
    if (status != KILN_OK) {
        kernel_variants_destroy(list);
        return status;
    }
    *out_list = list;
    return KILN_OK;
}

void kernel_variants_destroy(kernel_variants *list)
{
    for (size_t i = 0; list != NULL && i < list->file_count; i++) {
        free(list->files[i].text);
    }
    free(list);
}
