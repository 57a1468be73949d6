/* Sources from files or from the program itself. */
#include "kernel/kernel_source.h"

#include <stdlib.h>
#include <string.h>

#include <kiln/cpu.h>

#include "cli/host.h"
#include "kernels/kernels.h"

static const size_t max_source = (size_t)64 << 20;

kiln_status kernel_source_init(const cli_kernel *kernel, const kernel_form *form,
                               kernel_source *out_source, kiln_diag *diag)
{
    kiln_source *source = &out_source->source;
    memset(out_source, 0, sizeof(*out_source));
    *source = (kiln_source)KILN_SOURCE_INIT;
    out_source->form = form;
    source->language = form->language;
    source->name = kernel->name;
    source->defines = form->defines;
    source->define_count = form->define_count;
    source->options = form->options;
    source->option_count = form->option_count;
    source->include_dirs = kernel->include_dirs;
    source->include_dir_count = kernel->include_dir_count;
    source->entries = &form->entry;
    source->entry_count = form->entry != NULL ? 1 : 0;
    if (form->language == KILN_LANG_BUILTIN) {
        out_source->builtin = kiln_example_kernel(form->entry);
        source->builtin = &out_source->builtin;
        source->builtin_count = 1;
        return out_source->builtin != NULL
                   ? KILN_OK
                   : kiln_diag_set(diag, KILN_E_INVALID, NULL, kernel->name,
                                   "the kiln command has no built-in kernel \"%s\"", form->entry);
    }
    source->name = host_spell(form->path, out_source->name, sizeof(out_source->name));
    return KILN_OK;
}

kiln_status kernel_source_read(const cli_kernel *kernel, const kernel_form *form,
                               kernel_source *out_source, kiln_diag *diag)
{
    kiln_source *source = &out_source->source;
    kiln_status status = kernel_source_init(kernel, form, out_source, diag);
    if (status == KILN_OK && form->language != KILN_LANG_BUILTIN) {
        status = host_read_file(form->path, max_source, &out_source->text, &source->length, diag);
        source->text = out_source->text;
    }
    return status;
}

kiln_status kernel_source_read_file(const cli_kernel *kernel, const kernel_form *form,
                                    const char *what, kernel_source *out_source, kiln_diag *diag)
{
    if (form->language != KILN_LANG_BUILTIN) {
        return kernel_source_read(kernel, form, out_source, diag);
    }
    memset(out_source, 0, sizeof(*out_source));
    return kiln_diag_set(diag, KILN_E_UNSUPPORTED, NULL, kernel->name,
                         "it is built into the program: there is nothing to %s", what);
}

void kernel_source_deinit(kernel_source *source)
{
    free(source->text);
    source->text = NULL;
}
