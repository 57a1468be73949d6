/* The manifest as a whole, and its kernels. */
#include "manifest/manifest.h"

#include <stdlib.h>
#include <string.h>

#include "cli/host.h"
#include "kernel/source_file.h"
#include "manifest/manifest_reader.h"

static const size_t max_manifest = (size_t)8 << 20;

/* The value for a language in {"c": ..., "*": ...}; the object itself is not checked here. */
json_node manifest_for_language(const json_node *object, kiln_language language)
{
    json_node value = reader_get(object, kiln_language_name(language));
    if (value.json == NULL && language == KILN_LANG_BUILTIN) {
        value = reader_get(object, kiln_language_name(KILN_LANG_C)); /* the same source */
    }
    return value.json != NULL ? value : reader_get(object, "*");
}

static bool is_language(const char *key)
{
    return strcmp(key, "*") == 0 || kiln_language_parse(key) != KILN_LANG_NONE;
}

/* Keys of a by-language object must be languages: a typing error must not be "not this one". */
kiln_status manifest_check_languages(const cli_reader *reader, const json_node *object)
{
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach(object->json, key, value)
    {
        if (!is_language(key)) {
            json_node place = reader_get(object, key);
            return reader_refuse(reader, &place, NULL,
                                 "is not a key that a manifest has here, nor a language");
        }
    }
    return KILN_OK;
}

static kiln_status read_entry(const cli_reader *reader, const json_node *kernel_node,
                              kiln_language language, const char *name, const char **out_entry)
{
    json_node entry = reader_get(kernel_node, "entry");
    if (entry.json == NULL) {
        *out_entry = name;
        return KILN_OK;
    }
    if (json_is_object(entry.json)) {
        kiln_status status = manifest_check_languages(reader, &entry);
        if (status != KILN_OK) {
            return status;
        }
        entry = manifest_for_language(&entry, language);
    }
    return reader_text(reader, &entry, out_entry);
}

kiln_status manifest_read_extents(const cli_reader *reader, const json_node *array, uint64_t least,
                                  uint64_t *extents, uint32_t *out_dims)
{
    size_t dims = json_array_size(array->json);
    if (!json_is_array(array->json) || dims < 1 || dims > 3) {
        return reader_refuse(reader, array, NULL,
                             array->json == NULL ? "is missing"
                                                 : "must be an array of 1 to 3 whole numbers");
    }
    for (size_t i = 0; i < dims; i++) {
        json_node extent = reader_at(array, i);
        kiln_status status = reader_count(reader, &extent, least, &extents[i]);
        if (status != KILN_OK) {
            return status;
        }
    }
    *out_dims = (uint32_t)dims;
    return KILN_OK;
}

static kiln_status read_kernel_launch(const cli_reader *reader, const json_node *kernel_node,
                                      kiln_language language, kernel_shape *out_shape)
{
    static const char *const keys[] = {"global", "local", NULL};
    json_node launch = reader_get(kernel_node, "launch");
    uint32_t local_dims = 0;
    kiln_status status = KILN_OK;
    if (launch.json == NULL) {
        return reader->to_compile
                   ? KILN_OK
                   : reader_refuse(
                         reader, kernel_node,
                         "write \"launch\": {\"global\": [1024]}; only kiln warm, push and "
                         "pull do without",
                         "\"launch\" is missing");
    }
    if (json_is_object(launch.json) && reader_get(&launch, "global").json == NULL &&
        reader_get(&launch, "local").json == NULL) {
        status = manifest_check_languages(reader, &launch);
        launch = manifest_for_language(&launch, language);
    }
    if (status == KILN_OK) {
        status = reader_check_object(reader, &launch, keys);
    }
    if (status != KILN_OK) {
        return status;
    }
    json_node global = reader_get(&launch, "global");
    json_node local = reader_get(&launch, "local");
    status = manifest_read_extents(reader, &global, 1, out_shape->global, &out_shape->dims);
    if (status == KILN_OK && local.json != NULL) {
        status = manifest_read_extents(reader, &local, 1, out_shape->local, &local_dims);
        if (status == KILN_OK && local_dims != out_shape->dims) {
            status = reader_refuse(reader, &local, NULL, "must have as many dimensions as global");
        }
    }
    return status;
}

static kiln_status add_source_form(const cli_reader *reader, const json_node *kernel_node,
                                   cli_kernel *kernel, kiln_language language,
                                   const json_node *source)
{
    json_node options = reader_get(kernel_node, "options");
    kiln_status status = KILN_OK;
    if (kernel->form_count == KERNEL_MAX_FORMS) {
        return reader_refuse(reader, source, NULL, "is one language too many");
    }
    kernel_form *form = &kernel->forms[kernel->form_count];
    form->language = language;
    if (language != KILN_LANG_BUILTIN) {
        status = reader_path(reader, source, &form->path);
    }
    if (status == KILN_OK) {
        status = read_entry(reader, kernel_node, language, kernel->name, &form->entry);
    }
    if (status == KILN_OK) {
        status = read_kernel_launch(reader, kernel_node, language, &form->shape);
    }
    if (status == KILN_OK && options.json != NULL && !json_is_object(options.json)) {
        status = reader_refuse(reader, &options, NULL, "must be an object, by language");
    }
    if (status == KILN_OK && options.json != NULL) {
        json_node own = manifest_for_language(&options, language);
        status = manifest_check_languages(reader, &options);
        if (status == KILN_OK) {
            status = reader_texts(reader, &own, false, &form->options, &form->option_count);
        }
    }
    kernel->form_count++;
    return status;
}

static kiln_status read_forms(const cli_reader *reader, const json_node *kernel_node,
                              cli_kernel *kernel)
{
    json_node sources = reader_get(kernel_node, "sources");
    json_node builtin = reader_get(kernel_node, "builtin");
    const char *key = NULL;
    json_t *value = NULL;
    kiln_status status = KILN_OK;
    if (sources.json != NULL && !json_is_object(sources.json)) {
        return reader_refuse(reader, &sources, NULL, "must be an object, by language");
    }
    if (builtin.json != NULL && !json_is_boolean(builtin.json)) {
        return reader_refuse(reader, &builtin, NULL, "must be true or false");
    }
    json_object_foreach(sources.json, key, value)
    {
        json_node source = reader_get(&sources, key);
        kiln_language language = kiln_language_parse(key);
        if (language == KILN_LANG_NONE || language == KILN_LANG_BUILTIN) {
            char fix[160];
            source_file_suggest(key, fix, sizeof(fix));
            return reader_refuse(reader, &source, fix, "is not a language that kiln knows");
        }
        status = add_source_form(reader, kernel_node, kernel, language, &source);
        if (status != KILN_OK) {
            return status;
        }
    }
    if (json_is_true(builtin.json)) {
        status = add_source_form(reader, kernel_node, kernel, KILN_LANG_BUILTIN, &builtin);
    }
    if (status == KILN_OK && kernel->form_count == 0) {
        status = reader_refuse(reader, kernel_node, NULL, "has neither sources nor builtin");
    }
    return status;
}

kiln_status manifest_read_defines(const cli_reader *reader, const json_node *defines, size_t more,
                                  kiln_define **out_defines, size_t *out_count)
{
    const char *key = NULL;
    json_t *value = NULL;
    *out_count = 0;
    if (defines->json != NULL && !json_is_object(defines->json)) {
        return reader_refuse(reader, defines, NULL, "must be an object of text");
    }
    kiln_define *rows =
        pool_array(reader->pool, json_object_size(defines->json) + more + 1, sizeof(*rows));
    if (rows == NULL) {
        return reader_no_memory(reader);
    }
    json_object_foreach(defines->json, key, value)
    {
        kiln_define *row = &rows[(*out_count)++];
        json_node define = reader_get(defines, key);
        row->name = pool_text(reader->pool, key, strlen(key));
        if (row->name == NULL) {
            return reader_no_memory(reader);
        }
        /* An empty value is a definition too. */
        if (!json_is_string(value)) {
            return reader_refuse(reader, &define, NULL, "must be text");
        }
        row->value = pool_text(reader->pool, json_string_value(value), json_string_length(value));
        if (row->value == NULL) {
            return reader_no_memory(reader);
        }
    }
    *out_defines = rows;
    return KILN_OK;
}

static kiln_status read_manifest_args(const cli_reader *reader, const json_node *kernel_node,
                                      cli_kernel *kernel)
{
    json_node args = reader_get(kernel_node, "args");
    size_t count = json_array_size(args.json);
    if (args.json == NULL) {
        return reader->to_compile
                   ? KILN_OK
                   : reader_refuse(reader, kernel_node,
                                   "write \"args\": [...], or [] for none: kiln-manifest(5); only "
                                   "kiln warm, push and pull do without",
                                   "\"args\" is missing");
    }
    if (!json_is_array(args.json) || count > KERNEL_MAX_ARGS) {
        return reader_refuse(reader, &args, NULL, "must be an array of at most 64 arguments");
    }
    for (size_t i = 0; i < count; i++) {
        json_node arg = reader_at(&args, i);
        kernel->args[i].init.seed = i + 1;
        kiln_status status = manifest_read_arg(reader, &arg, &kernel->args[i]);
        if (status != KILN_OK) {
            return status;
        }
    }
    kernel->arg_count = count;
    return KILN_OK;
}

static kiln_status read_reference(const cli_reader *reader, const json_node *kernel_node,
                                  cli_kernel *kernel)
{
    static const char *const keys[] = {"file", "entry", NULL};
    json_node reference = reader_get(kernel_node, "reference");
    if (reference.json == NULL) {
        return KILN_OK;
    }
    kiln_status status =
        read_kernel_launch(reader, kernel_node, KILN_LANG_C, &kernel->reference_shape);
    if (status != KILN_OK) {
        return status;
    }
    if (!json_is_object(reference.json)) {
        return reader_text(reader, &reference, &kernel->reference);
    }
    json_node file = reader_get(&reference, "file");
    json_node entry = reader_get(&reference, "entry");
    status = reader_check_object(reader, &reference, keys);
    if (status == KILN_OK) {
        status = reader_path(reader, &file, &kernel->reference_path);
    }
    return status == KILN_OK ? reader_text(reader, &entry, &kernel->reference) : status;
}

static kiln_status read_kernel(const cli_reader *reader, const json_node *node, cli_kernel *kernel)
{
    static const char *const keys[] = {"name",    "sources",   "builtin",      "entry",
                                       "defines", "options",   "include_dirs", "args",
                                       "launch",  "tolerance", "reference",    "variants",
                                       "size",    "flops",     "bytes",        NULL};
    json_node defines = reader_get(node, "defines");
    kiln_define *rows = NULL;
    json_node name = reader_get(node, "name");
    json_node dirs = reader_get(node, "include_dirs");
    json_node tolerance = reader_get(node, "tolerance");
    kiln_status status = reader_check_object(reader, node, keys);
    if (status == KILN_OK) {
        status = reader_text(reader, &name, &kernel->name);
    }
    if (status == KILN_OK) {
        status = read_forms(reader, node, kernel);
    }
    if (status == KILN_OK) {
        status = manifest_read_defines(reader, &defines, 0, &rows, &kernel->define_count);
        kernel->defines = rows;
    }
    if (status == KILN_OK) {
        status =
            reader_texts(reader, &dirs, true, &kernel->include_dirs, &kernel->include_dir_count);
    }
    if (status == KILN_OK) {
        status = read_manifest_args(reader, node, kernel);
    }
    if (status == KILN_OK && tolerance.json != NULL) {
        status = reader_tolerance(reader, &tolerance, &kernel->tolerance);
    }
    if (status == KILN_OK) {
        status = read_reference(reader, node, kernel);
    }
    return status == KILN_OK ? manifest_read_tuning(reader, node, kernel) : status;
}

static kiln_status read_root(const cli_reader *reader, json_t *json, cli_manifest *out_manifest)
{
    static const char *const keys[] = {"kiln_manifest", "kernels", NULL};
    json_node root = {json, {{{NULL, 0}}, 0}};
    json_node version = reader_get(&root, "kiln_manifest");
    json_node kernels = reader_get(&root, "kernels");
    uint64_t number = 0;
    kiln_status status = KILN_OK;
    if (json_is_object(json) && version.json == NULL) {
        return reader_refuse(reader, &root, "it begins {\"kiln_manifest\": 1, ...",
                             "this is not a kiln manifest");
    }
    status = reader_check_object(reader, &root, keys);
    if (status == KILN_OK) {
        status = reader_count(reader, &version, 1, &number);
    }
    if (status == KILN_OK && number != 1) {
        status = reader_refuse(reader, &version, "a newer kiln may read it",
                               "this kiln knows version 1");
    }
    if (status != KILN_OK) {
        return status;
    }
    size_t count = json_array_size(kernels.json);
    if (count == 0) {
        return reader_refuse(reader, &kernels, NULL, "must be an array of kernels, and not empty");
    }
    out_manifest->kernels = pool_array(reader->pool, count, sizeof(cli_kernel));
    if (out_manifest->kernels == NULL) {
        return reader_no_memory(reader);
    }
    for (size_t i = 0; i < count && status == KILN_OK; i++) {
        json_node kernel_node = reader_at(&kernels, i);
        status = read_kernel(reader, &kernel_node, &out_manifest->kernels[i]);
    }
    out_manifest->count = count;
    return status;
}

static kiln_status parse_text(const char *text, size_t length, const char *path, bool to_compile,
                              cli_pool *pool, cli_manifest *out_manifest, kiln_diag *diag)
{
    json_error_t error;
    *out_manifest = (cli_manifest){path, NULL, 0};
    const char *dir = host_dir_of(pool, path);
    cli_reader reader = {text, path, dir, pool, diag, to_compile};
    if (dir == NULL) {
        return reader_no_memory(&reader);
    }
    const char *first = text + strspn(text, " \t\r\n");
    if (*first != '{' && *first != '[') {
        return kiln_diag_set(diag, KILN_E_INVALID,
                             "a manifest begins {\"kiln_manifest\": 1, ...: kiln-manifest(5); a "
                             "kernel file alone goes to kiln run or kiln compile",
                             path, "is not a manifest%s", *first == '\0' ? ": it is empty" : "");
    }
    json_t *json = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    if (json == NULL) {
        char what[256];
        (void)snprintf(what, sizeof(what), "%.160s:%d:%d", path, error.line,
                       error.column > 0 ? error.column : 1);
        return kiln_diag_set(diag, KILN_E_INVALID,
                             "this is not JSON: look for a comma, a quote or a bracket there", what,
                             "%s", error.text);
    }
    kiln_status status = read_root(&reader, json, out_manifest);
    json_decref(json);
    return status;
}

kiln_status manifest_parse(const char *text, size_t length, const char *path, cli_pool *pool,
                           cli_manifest *out_manifest, kiln_diag *diag)
{
    return parse_text(text, length, path, false, pool, out_manifest, diag);
}

static kiln_status read_file(const char *path, bool to_compile, cli_pool *pool,
                             cli_manifest *out_manifest, kiln_diag *diag)
{
    char *text = NULL;
    size_t length = 0;
    *out_manifest = (cli_manifest){path, NULL, 0};
    kiln_status status = host_read_file(path, max_manifest, &text, &length, diag);
    if (status == KILN_OK) {
        status = parse_text(text, length, path, to_compile, pool, out_manifest, diag);
    }
    free(text);
    return status;
}

kiln_status manifest_read(const char *path, cli_pool *pool, cli_manifest *out_manifest,
                          kiln_diag *diag)
{
    return read_file(path, false, pool, out_manifest, diag);
}

kiln_status manifest_read_to_compile(const char *path, cli_pool *pool, cli_manifest *out_manifest,
                                     kiln_diag *diag)
{
    return read_file(path, true, pool, out_manifest, diag);
}

void manifest_list_names(const cli_manifest *manifest, char *text, size_t size)
{
    (void)snprintf(text, size, "%s", manifest->count == 1 ? "its kernel is" : "its kernels are");
    for (size_t i = 0; i < manifest->count; i++) {
        const size_t used = strlen(text);
        (void)snprintf(text + used, size - used, "%s %s", i > 0 ? "," : "",
                       manifest->kernels[i].name);
    }
}
