/* One kernel from options. */
#include "cmd/run_file.h"

#include "cli/diag.h"
#include "cli/host.h"
#include "kernel/kernel_arg.h"
#include "kernel/kernel_data.h"
#include "kernel/source_file.h"

kiln_status run_file_check(const run_file_options *options, bool is_manifest, kiln_diag *diag)
{
    const struct {
        bool given;
        const char *name;
    } rows[] = {
        {options->entry != NULL, "--entry"},     {options->language != NULL, "--language"},
        {options->args.count > 0, "--arg"},      {options->global != NULL, "--global"},
        {options->local != NULL, "--local"},     {options->defines.count > 0, "-D"},
        {options->include_dirs.count > 0, "-I"}, {options->compiler_options.count > 0, "--option"},
        {options->saves.count > 0, "--save"},    {options->expects.count > 0, "--expect"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && is_manifest; i++) {
        if (rows[i].given) {
            return kiln_diag_set(diag, KILN_E_INVALID,
                                 "remove it: the manifest describes its kernels", rows[i].name,
                                 "goes with a kernel file, not with a manifest");
        }
    }
    return KILN_OK;
}

static kiln_status read_option_shape(const run_file_options *options, kernel_shape *shape,
                                     kiln_diag *diag)
{
    size_t dims = 0;
    size_t local_dims = 0;
    if (options->global == NULL) {
        return kiln_diag_set(diag, KILN_E_INVALID, "give --global, for example --global 1024", "",
                             "the number of work-items is missing");
    }
    if (!kernel_shape_parse(options->global, 3, shape->global, &dims)) {
        return kiln_diag_set(diag, KILN_E_INVALID, "write 1024 or 64x64x8", "--global",
                             "\"%.60s\" is not a shape of 1 to 3 dimensions", options->global);
    }
    shape->dims = (uint32_t)dims;
    if (options->local == NULL) {
        return KILN_OK;
    }
    if (!kernel_shape_parse(options->local, 3, shape->local, &local_dims) || local_dims != dims) {
        return kiln_diag_set(
            diag, KILN_E_INVALID, "write 64, or 8x8 where --global is 1024x1024", "--local",
            "\"%.60s\" is not a shape of as many dimensions as --global", options->local);
    }
    return KILN_OK;
}

/* --save and --expect: sets the field of the argument that is named. */
static kiln_status attach_files(const opt_list *list, const char *option, cli_kernel *kernel,
                                bool save, kiln_diag *diag)
{
    for (size_t i = 0; i < list->count; i++) {
        size_t index = 0;
        const char *file = NULL;
        if (!kernel_arg_parse_file(list->items[i], &index, &file)) {
            return kiln_diag_set(diag, KILN_E_INVALID, "write N=FILE, N counts from 0", option,
                                 "\"%.100s\" does not name an argument and a file", list->items[i]);
        }
        if (index >= kernel->arg_count || !kernel_is_written(&kernel->args[index])) {
            return kiln_diag_set(diag, KILN_E_INVALID, "only out and inout come back", option,
                                 "argument %zu is not one that the kernel writes", index);
        }
        if (save) {
            kernel->args[index].save = file;
        } else {
            kernel->args[index].expect = file;
        }
    }
    return KILN_OK;
}

static kiln_status read_option_args(const run_file_options *options, cli_pool *pool,
                                    cli_kernel *kernel, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    if (options->args.count > KERNEL_MAX_ARGS) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, "--arg", "at most 64 can be given");
    }
    for (size_t i = 0; i < options->args.count && status == KILN_OK; i++) {
        status = kernel_arg_parse(options->args.items[i], i, pool, &kernel->args[i], diag);
    }
    kernel->arg_count = options->args.count;
    if (status == KILN_OK) {
        status = attach_files(&options->saves, "--save", kernel, true, diag);
    }
    return status == KILN_OK ? attach_files(&options->expects, "--expect", kernel, false, diag)
                             : status;
}

kiln_status run_file_describe(const run_file_options *options, const char *path, cli_pool *pool,
                              cli_kernel *kernel, kiln_diag *diag)
{
    kernel_form *form = pool_alloc(pool, sizeof(*form));
    if (form == NULL || !source_file_defines(&options->defines, pool, &form->defines)) {
        return diag_no_memory(diag, path);
    }
    kernel->name = options->entry != NULL ? options->entry : host_name_of(path);
    kernel->forms = form;
    kernel->form_count = 1;
    kernel->include_dirs = options->include_dirs.items;
    kernel->include_dir_count = options->include_dirs.count;
    form->path = path;
    form->entry = options->entry;
    form->options = options->compiler_options.items;
    form->option_count = options->compiler_options.count;
    form->define_count = options->defines.count;
    kiln_status status = source_file_language(options->language, path, &form->language, diag);
    if (status == KILN_OK && !host_exists(path)) {
        /* Before any device is looked for: this is what the user wants to hear first. */
        status = kiln_diag_set(diag, KILN_E_INVALID, "check the name", path, "no such file");
    }
    if (status == KILN_OK) {
        status = read_option_shape(options, &form->shape, diag);
    }
    return status == KILN_OK ? read_option_args(options, pool, kernel, diag) : status;
}
