/* The list, and the files behind it. */
#include "kernel/kernel_variants.h"

#include <stdlib.h>

#include "cli/diag.h"
#include "kernel/kernel_launch.h"

const kernel_form *kernel_variants_form(const cli_kernel *kernel, size_t place)
{
    for (size_t i = 0; i < kernel->form_count; i++) {
        if (place-- == 0) {
            return &kernel->forms[i];
        }
        for (size_t j = 0; j < kernel->variant_count; j++) {
            const kernel_form *variant = &kernel->forms[kernel->form_count + j];
            if (variant->language == kernel->forms[i].language && place-- == 0) {
                return variant;
            }
        }
    }
    return NULL;
}

/* What a launch moves at least: what is read, and what is written. */
static double least_bytes(const cli_kernel *kernel)
{
    double bytes = 0;
    for (size_t i = 0; i < kernel->arg_count; i++) {
        const kernel_arg *arg = &kernel->args[i];
        if (kernel_is_buffer(arg)) {
            double size = (double)arg->count * (double)data_type_size(arg->type);
            bytes += arg->access == KERNEL_INOUT ? 2 * size : size;
        }
    }
    return bytes;
}

static void describe_kernel(kernel_variants *list, const cli_kernel *kernel)
{
    const kernel_shape *shape = &kernel->forms[0].shape;
    list->kernel = (kiln_kernel){.struct_size = sizeof(list->kernel),
                                 .name = kernel->name,
                                 .variants = list->variants,
                                 .sizes = kernel->sizes,
                                 .size_count = kernel->size_count,
                                 .flops = kernel->flops,
                                 .bytes = least_bytes(kernel)};
    if (kernel->size_count == 0) {
        list->kernel.sizes = shape->global;
        list->kernel.size_count = shape->dims;
    }
}

kiln_status kernel_variants_create(const cli_kernel *kernel, kernel_variants **out_list,
                                   kiln_diag *diag)
{
    kernel_variants *list = calloc(1, sizeof(*list));
    const kernel_form *form = NULL;
    *out_list = NULL;
    if (list == NULL) {
        return diag_no_memory(diag, kernel->name);
    }
    describe_kernel(list, kernel);
    kiln_status status = KILN_OK;
    for (size_t i = 0; status == KILN_OK && (form = kernel_variants_form(kernel, i)) != NULL; i++) {
        kiln_variant *variant = &list->variants[i];
        list->source_count++;
        status = kernel_source_read(kernel, form, &list->sources[i], diag);
        *variant = (kiln_variant){.struct_size = sizeof(*variant),
                                  .name = form->name,
                                  .source = &list->sources[i].source,
                                  .entry = form->entry};
        kernel_shape_to_launch(&form->shape, &variant->launch);
    }
    list->kernel.variant_count = list->source_count;
    if (status != KILN_OK) {
        kernel_variants_destroy(list);
        return status;
    }
    *out_list = list;
    return KILN_OK;
}

void kernel_variants_destroy(kernel_variants *list)
{
    for (size_t i = 0; list != NULL && i < list->source_count; i++) {
        kernel_source_deinit(&list->sources[i]);
    }
    free(list);
}
