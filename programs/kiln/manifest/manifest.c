/* The manifest as a whole, and its kernels. */
#include "manifest/manifest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <kiln/unstable/names.h>
#include <kiln/unstable/tune.h>

#include "cli/diag.h"
#include "cli/host.h"
#include "kernel/source_file.h"
#include "manifest/manifest_reader.h"

enum { NAME_MAX_LENGTH = 100 }; /* of a variant */

static const size_t max_manifest = (size_t)8 << 20;

/* --- by language ------------------------------------------------------------------------------ */

/* Keys of a by-language object must be languages: a typing error must not be "not this one". */
static void check_languages(cli_reader *reader, const json_node *object)
{
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach(object->json, key, value)
    {
        if (strcmp(key, "*") != 0 && kiln_language_parse(key) == KILN_LANG_NONE) {
            json_node place = reader_get(object, key);
            reader_refuse(reader, &place, NULL,
                          "is not a key that a manifest has here, nor a language");
        }
    }
}

/* The value for a language in {"c": ..., "*": ...}. */
static json_node pick_language(cli_reader *reader, const json_node *object, kiln_language language)
{
    check_languages(reader, object);
    json_node value = reader_get(object, kiln_language_name(language));
    if (value.json == NULL && language == KILN_LANG_BUILTIN) {
        value = reader_get(object, kiln_language_name(KILN_LANG_C)); /* the same source */
    }
    return value.json != NULL ? value : reader_get(object, "*");
}

/* --- forms ------------------------------------------------------------------------------------ */

/* "global" and "local"; what a variant does not say stays as it is. */
static void read_shape(cli_reader *reader, const json_node *launch, bool whole, kernel_shape *shape)
{
    static const char *const keys[] = {"global", "local", NULL};
    json_node global = reader_get(launch, "global");
    json_node local = reader_get(launch, "local");
    if (!reader_check_object(reader, launch, keys)) {
        return;
    }
    if (whole || global.json != NULL) {
        const uint32_t before = shape->dims;
        memset(shape->global, 0, sizeof(shape->global));
        shape->dims = (uint32_t)reader_extents(reader, &global, 3, shape->global);
        if (!whole && local.json == NULL && shape->dims != before) {
            reader_refuse(reader, &global, "give local as well",
                          "has other dimensions than the local that it goes with");
        }
    }
    if (local.json != NULL) {
        memset(shape->local, 0, sizeof(shape->local));
        if (reader_extents(reader, &local, 3, shape->local) != shape->dims) {
            reader_refuse(reader, &local, NULL, "must have as many dimensions as global");
        }
    }
}

static void read_kernel_launch(cli_reader *reader, const json_node *kernel_node,
                               kiln_language language, kernel_shape *out_shape)
{
    json_node launch = reader_get(kernel_node, "launch");
    if (launch.json == NULL) {
        if (!reader->to_compile) {
            reader_refuse(reader, kernel_node,
                          "write \"launch\": {\"global\": [1024]}; only kiln warm, push and pull "
                          "do without",
                          "\"launch\" is missing");
        }
        return;
    }
    if (json_is_object(launch.json) && reader_get(&launch, "global").json == NULL &&
        reader_get(&launch, "local").json == NULL) {
        launch = pick_language(reader, &launch, language);
    }
    read_shape(reader, &launch, true, out_shape);
}

static void read_form(cli_reader *reader, const json_node *node, cli_kernel *kernel,
                      kiln_language language, const json_node *source)
{
    json_node entry = reader_get(node, "entry");
    json_node options = reader_get(node, "options");
    kernel_form *form = &kernel->forms[kernel->form_count++];
    form->name = kiln_language_name(language);
    form->language = language;
    form->path = language != KILN_LANG_BUILTIN ? reader_path(reader, source) : NULL;
    if (json_is_object(entry.json)) {
        entry = pick_language(reader, &entry, language);
    }
    form->entry =
        reader_get(node, "entry").json != NULL ? reader_text(reader, &entry) : kernel->name;
    read_kernel_launch(reader, node, language, &form->shape);
    if (options.json != NULL && !json_is_object(options.json)) {
        reader_refuse(reader, &options, NULL, "must be an object, by language");
    }
    json_node own = pick_language(reader, &options, language);
    form->options = reader_texts(reader, &own, false, &form->option_count);
}

static void read_forms(cli_reader *reader, const json_node *node, cli_kernel *kernel)
{
    json_node sources = reader_get(node, "sources");
    json_node builtin = reader_get(node, "builtin");
    const char *key = NULL;
    json_t *value = NULL;
    if (sources.json != NULL && !json_is_object(sources.json)) {
        reader_refuse(reader, &sources, NULL, "must be an object, by language");
    }
    if (builtin.json != NULL && !json_is_boolean(builtin.json)) {
        reader_refuse(reader, &builtin, NULL, "must be true or false");
    }
    json_object_foreach(sources.json, key, value)
    {
        json_node source = reader_get(&sources, key);
        kiln_language language = kiln_language_parse(key);
        if (language == KILN_LANG_NONE || language == KILN_LANG_BUILTIN) {
            char fix[160];
            source_file_suggest(key, fix, sizeof(fix));
            reader_refuse(reader, &source, fix, "is not a language that kiln knows");
            return;
        }
        read_form(reader, node, kernel, language, &source);
    }
    if (json_is_true(builtin.json)) {
        read_form(reader, node, kernel, KILN_LANG_BUILTIN, &builtin);
    }
    if (kernel->form_count == 0) {
        reader_refuse(reader, node, NULL, "has neither sources nor builtin");
    }
}

/* An object of macros (absent: none), and those of `like` (may be NULL) that it has not. */
static void read_defines(cli_reader *reader, const json_node *node, const kernel_form *like,
                         kernel_form *form)
{
    json_node defines = reader_get(node, "defines");
    const size_t more = like != NULL ? like->define_count : 0;
    const char *key = NULL;
    json_t *value = NULL;
    size_t count = 0;
    if (defines.json != NULL && !json_is_object(defines.json)) {
        reader_refuse(reader, &defines, NULL, "must be an object of text");
    }
    kiln_define *rows = reader_keep(
        reader, pool_array(reader->pool, json_object_size(defines.json) + more + 1, sizeof(*rows)));
    if (rows == NULL) {
        return;
    }
    json_object_foreach(defines.json, key, value)
    {
        json_node define = reader_get(&defines, key);
        if (!json_is_string(value)) { /* an empty one is a definition, too */
            reader_refuse(reader, &define, NULL, "must be text");
            return;
        }
        rows[count].name = reader_keep(reader, pool_text(reader->pool, key, strlen(key)));
        rows[count++].value = reader_keep(
            reader, pool_text(reader->pool, json_string_value(value), json_string_length(value)));
    }
    for (size_t i = 0; i < more; i++) {
        if (json_object_get(defines.json, like->defines[i].name) == NULL) {
            rows[count++] = like->defines[i];
        }
    }
    form->defines = rows;
    form->define_count = count;
}

/* --- variants --------------------------------------------------------------------------------- */

static void read_variant_name(cli_reader *reader, const json_node *node, const cli_kernel *kernel,
                              kernel_form *form)
{
    json_node name = reader_get(node, "name");
    const char *text = reader_text(reader, &name);
    if (text == NULL) {
        return;
    }
    if (strlen(text) > NAME_MAX_LENGTH) {
        reader_refuse(reader, &name, NULL, "is longer than %d bytes", NAME_MAX_LENGTH);
    }
    form->name = reader_keep(
        reader, pool_format(reader->pool, "%s/%s", kiln_language_name(form->language), text));
    for (size_t i = 0; i < kernel->variant_count && form->name != NULL; i++) {
        const kernel_form *before = &kernel->forms[kernel->form_count + i];
        if (before->name != NULL && strcmp(before->name, form->name) == 0) {
            reader_refuse(reader, &name, NULL, "is the name of another variant");
        }
    }
}

static void read_variant(cli_reader *reader, const json_node *node, const cli_kernel *kernel,
                         kernel_form *form)
{
    static const char *const keys[] = {"name",    "entry",   "launch", "source",
                                       "defines", "options", NULL};
    json_node source = reader_get(node, "source");
    json_node entry = reader_get(node, "entry");
    json_node options = reader_get(node, "options");
    json_node launch = reader_get(node, "launch");
    const kernel_form like = *form;
    if (!reader_check_object(reader, node, keys)) {
        return;
    }
    if (json_object_size(node->json) == (json_object_get(node->json, "name") != NULL)) {
        reader_refuse(reader, node, "give defines, launch, source, entry or options",
                      "changes nothing");
    }
    read_variant_name(reader, node, kernel, form);
    /* A kernel that is compiled into the command can be launched in another shape, no more. */
    for (size_t i = 3; form->language == KILN_LANG_BUILTIN && keys[i] != NULL; i++) {
        json_node value = reader_get(node, keys[i]);
        if (value.json != NULL) {
            reader_refuse(reader, &value, NULL, "has no meaning for a built-in kernel");
        }
    }
    form->path = source.json != NULL ? reader_path(reader, &source) : form->path;
    form->entry = entry.json != NULL ? reader_text(reader, &entry) : form->entry;
    if (options.json != NULL) {
        form->options = reader_texts(reader, &options, false, &form->option_count);
    }
    read_defines(reader, node, &like, form);
    if (launch.json != NULL) {
        read_shape(reader, &launch, false, &form->shape);
    }
}

static void read_variant_list(cli_reader *reader, const json_node *list, cli_kernel *kernel,
                              const kernel_form *form)
{
    const size_t count = json_array_size(list->json);
    if (count == 0) {
        reader_refuse(reader, list, NULL, "must be an array of variants, and not empty");
    }
    for (size_t i = 0; i < count && reader->status == KILN_OK; i++) {
        json_node node = reader_at(list, i);
        const size_t place = kernel->form_count + kernel->variant_count;
        if (place == KILN_VARIANTS_MAX) {
            reader_refuse(reader, list, NULL, "is too much: %u variants are the most",
                          KILN_VARIANTS_MAX);
            return;
        }
        kernel->forms[place] = *form;
        read_variant(reader, &node, kernel, &kernel->forms[place]);
        kernel->variant_count++;
    }
}

/* Names of the cache's entries are made of them. */
static bool is_plain_name(const char *name)
{
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "0123456789._-");
    return length <= 64 && name[length] == '\0';
}

static void read_variants(cli_reader *reader, const json_node *kernel_node, cli_kernel *kernel)
{
    json_node variants = reader_get(kernel_node, "variants");
    json_node name = reader_get(kernel_node, "name");
    if (variants.json == NULL) {
        return;
    }
    if (!json_is_object(variants.json)) {
        reader_refuse(reader, &variants, NULL, "must be an object, by language");
    }
    check_languages(reader, &variants);
    if (kernel->name != NULL && !is_plain_name(kernel->name)) {
        reader_refuse(reader, &name, NULL,
                      "must be at most 64 letters, digits, '.', '-' and '_' where there are "
                      "variants");
    }
    for (size_t i = 0; i < kernel->form_count && reader->status == KILN_OK; i++) {
        const kernel_form *form = &kernel->forms[i];
        /* What is built in is not compiled: only variants that are its own are for it. */
        json_node list = form->language == KILN_LANG_BUILTIN
                             ? reader_get(&variants, "builtin")
                             : pick_language(reader, &variants, form->language);
        if (list.json != NULL) {
            read_variant_list(reader, &list, kernel, form);
        }
    }
}

/* --- a kernel --------------------------------------------------------------------------------- */

static void read_kernel_args(cli_reader *reader, const json_node *kernel_node, cli_kernel *kernel)
{
    json_node args = reader_get(kernel_node, "args");
    const size_t count = json_array_size(args.json);
    if (args.json == NULL) {
        if (!reader->to_compile) {
            reader_refuse(reader, kernel_node,
                          "write \"args\": [...], or [] for none: kiln-manifest(5); only kiln "
                          "warm, push and pull do without",
                          "\"args\" is missing");
        }
        return;
    }
    if (!json_is_array(args.json) || count > KERNEL_MAX_ARGS) {
        reader_refuse(reader, &args, NULL, "must be an array of at most 64 arguments");
        return;
    }
    for (size_t i = 0; i < count && reader->status == KILN_OK; i++) {
        json_node arg = reader_at(&args, i);
        kernel->args[i].init.seed = i + 1;
        manifest_read_arg(reader, &arg, &kernel->args[i]);
    }
    kernel->arg_count = count;
}

static void read_reference(cli_reader *reader, const json_node *kernel_node, cli_kernel *kernel)
{
    static const char *const keys[] = {"file", "entry", NULL};
    json_node reference = reader_get(kernel_node, "reference");
    json_node file = reader_get(&reference, "file");
    json_node entry = reader_get(&reference, "entry");
    if (reference.json == NULL) {
        return;
    }
    read_kernel_launch(reader, kernel_node, KILN_LANG_C, &kernel->reference_shape);
    if (!json_is_object(reference.json)) {
        kernel->reference = reader_text(reader, &reference);
    } else if (reader_check_object(reader, &reference, keys)) {
        kernel->reference_path = reader_path(reader, &file);
        kernel->reference = reader_text(reader, &entry);
    }
}

static void read_amounts(cli_reader *reader, const json_node *kernel_node, cli_kernel *kernel)
{
    json_node sizes = reader_get(kernel_node, "size");
    json_node flops = reader_get(kernel_node, "flops");
    const size_t count = json_array_size(sizes.json);
    if (sizes.json != NULL && (count == 0 || count > KERNEL_MAX_SIZES)) {
        reader_refuse(reader, &sizes, NULL, "must be an array of 1 to 8 numbers or products");
    }
    for (size_t i = 0; i < count && reader->status == KILN_OK; i++) {
        json_node node = reader_at(&sizes, i);
        const double size = manifest_read_amount(reader, &node, kernel);
        kernel->sizes[i] = size < 0x1p63 ? (uint64_t)ceil(size) : (uint64_t)1 << 63;
    }
    kernel->size_count = count;
    if (flops.json != NULL && reader->status == KILN_OK) {
        kernel->flops = manifest_read_amount(reader, &flops, kernel);
    }
}

static void read_kernel(cli_reader *reader, const json_node *node, cli_kernel *kernel)
{
    static const char *const keys[] = {
        "name",      "sources",      "builtin", "entry",  "defines",
        "options",   "include_dirs", "args",    "launch", "tolerance",
        "reference", "variants",     "size",    "flops",  NULL};
    json_node name = reader_get(node, "name");
    json_node dirs = reader_get(node, "include_dirs");
    json_node tolerance = reader_get(node, "tolerance");
    if (!reader_check_object(reader, node, keys)) {
        return;
    }
    kernel->name = reader_text(reader, &name);
    kernel->forms =
        reader_keep(reader, pool_array(reader->pool, KILN_VARIANTS_MAX, sizeof(*kernel->forms)));
    if (reader->status != KILN_OK) {
        return;
    }
    read_forms(reader, node, kernel);
    read_defines(reader, node, NULL, kernel->forms);
    for (size_t i = 1; i < kernel->form_count; i++) {
        kernel->forms[i].defines = kernel->forms->defines;
        kernel->forms[i].define_count = kernel->forms->define_count;
    }
    kernel->include_dirs = reader_texts(reader, &dirs, true, &kernel->include_dir_count);
    read_kernel_args(reader, node, kernel);
    kernel->tolerance = reader_tolerance(reader, &tolerance);
    read_reference(reader, node, kernel);
    read_variants(reader, node, kernel);
    read_amounts(reader, node, kernel);
}

static void read_root(cli_reader *reader, json_t *json, cli_manifest *out_manifest)
{
    static const char *const keys[] = {"kiln_manifest", "kernels", NULL};
    json_node root = {json, {{{NULL, 0}}, 0}};
    json_node version = reader_get(&root, "kiln_manifest");
    json_node kernels = reader_get(&root, "kernels");
    const size_t count = json_array_size(kernels.json);
    if (json_is_object(json) && version.json == NULL) {
        reader_refuse(reader, &root, "it begins {\"kiln_manifest\": 1, ...",
                      "this is not a kiln manifest");
    }
    if (!reader_check_object(reader, &root, keys)) {
        return;
    }
    if (reader_count(reader, &version, 1) != 1) {
        reader_refuse(reader, &version, "a newer kiln may read it", "this kiln knows version 1");
    }
    if (count == 0) {
        reader_refuse(reader, &kernels, NULL, "must be an array of kernels, and not empty");
    }
    out_manifest->kernels =
        reader_keep(reader, pool_array(reader->pool, count, sizeof(cli_kernel)));
    for (size_t i = 0; i < count && reader->status == KILN_OK; i++) {
        json_node kernel_node = reader_at(&kernels, i);
        read_kernel(reader, &kernel_node, &out_manifest->kernels[i]);
    }
    out_manifest->count = count;
}

/* --- files ------------------------------------------------------------------------------------ */

static kiln_status parse_text(const char *text, size_t length, const char *path, bool to_compile,
                              cli_pool *pool, cli_manifest *out_manifest, kiln_diag *diag)
{
    json_error_t error;
    *out_manifest = (cli_manifest){path, NULL, 0};
    const char *dir = host_dir_of(pool, path);
    cli_reader reader = {text, path, dir, pool, diag, to_compile, KILN_OK};
    if (dir == NULL) {
        return diag_no_memory(diag, path);
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
    read_root(&reader, json, out_manifest);
    json_decref(json);
    return reader.status;
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

/* "its kernels are a, b, c", cut where there is no room. */
static void list_names(const cli_manifest *manifest, char *text, size_t size)
{
    (void)snprintf(text, size, "%s", manifest->count == 1 ? "its kernel is" : "its kernels are");
    for (size_t i = 0; i < manifest->count; i++) {
        const size_t used = strlen(text);
        (void)snprintf(text + used, size - used, "%s %s", i > 0 ? "," : "",
                       manifest->kernels[i].name);
    }
}

kiln_status manifest_keep(cli_manifest *manifest, const opt_list *names, kiln_diag *diag)
{
    size_t kept = 0;
    for (size_t i = 0; i < names->count; i++) {
        bool found = false;
        for (size_t j = 0; j < manifest->count; j++) {
            found = found || strcmp(manifest->kernels[j].name, names->items[i]) == 0;
        }
        if (!found) {
            char fix[256];
            list_names(manifest, fix, sizeof(fix));
            return kiln_diag_set(diag, KILN_E_INVALID, fix, manifest->path,
                                 "has no kernel \"%.80s\"", names->items[i]);
        }
    }
    for (size_t j = 0; j < manifest->count && names->count > 0; j++) {
        bool wanted = false;
        for (size_t i = 0; i < names->count; i++) {
            wanted = wanted || strcmp(manifest->kernels[j].name, names->items[i]) == 0;
        }
        if (wanted) {
            manifest->kernels[kept++] = manifest->kernels[j];
        }
    }
    manifest->count = names->count > 0 ? kept : manifest->count;
    return KILN_OK;
}
