/* What a manifest says for kiln tune: variants by language, sizes and amounts. */
#include <stdio.h>
#include <string.h>

#include <kiln/unstable/tune.h>

#include "kernel/expression.h"
#include "manifest/manifest_reader.h"

enum { NAME_MAX_LENGTH = 100 };

/* --- a variant -------------------------------------------------------------------------------- */

static kiln_status read_name(const cli_reader *reader, const json_node *node,
                             const kernel_variant *before, size_t count, const char **out_name)
{
    json_node name = reader_get(node, "name");
    kiln_status status = reader_text(reader, &name, out_name);
    if (status == KILN_OK && strlen(*out_name) > NAME_MAX_LENGTH) {
        status = reader_refuse(reader, &name, NULL, "is longer than %d bytes", NAME_MAX_LENGTH);
    }
    for (size_t i = 0; i < count && status == KILN_OK; i++) {
        if (strcmp(before[i].name, *out_name) == 0) {
            status = reader_refuse(reader, &name, NULL, "is the name of another variant");
        }
    }
    return status;
}

/* The kernel's definitions, but for those that the variant has too, after its own. */
static kiln_status read_defines(const cli_reader *reader, const json_node *node,
                                const cli_kernel *kernel, kernel_variant *variant)
{
    json_node own = reader_get(node, "defines");
    kiln_define *rows = NULL;
    size_t count = 0;
    kiln_status status = manifest_read_defines(reader, &own, kernel->define_count, &rows, &count);
    for (size_t i = 0; i < kernel->define_count && status == KILN_OK; i++) {
        if (json_object_get(own.json, kernel->defines[i].name) == NULL) {
            rows[count++] = kernel->defines[i];
        }
    }
    variant->defines = rows;
    variant->define_count = count;
    return status;
}

static kiln_status read_variant_launch(const cli_reader *reader, const json_node *node,
                                       kernel_variant *variant)
{
    static const char *const keys[] = {"global", "local", NULL};
    json_node launch = reader_get(node, "launch");
    json_node global = reader_get(&launch, "global");
    json_node local = reader_get(&launch, "local");
    kernel_shape *shape = &variant->shape;
    uint32_t dims = 0;
    if (launch.json == NULL) {
        return KILN_OK;
    }
    kiln_status status = reader_check_object(reader, &launch, keys);
    if (status == KILN_OK && global.json != NULL) {
        memset(shape->global, 0, sizeof(shape->global));
        status = manifest_read_extents(reader, &global, 1, shape->global, &dims);
        if (status == KILN_OK && local.json == NULL && dims != shape->dims) {
            status = reader_refuse(reader, &global, "give local as well",
                                   "has other dimensions than the local that it goes with");
        }
        shape->dims = dims;
    }
    if (status == KILN_OK && local.json != NULL) {
        memset(shape->local, 0, sizeof(shape->local));
        status = manifest_read_extents(reader, &local, 1, shape->local, &dims);
        if (status == KILN_OK && dims != shape->dims) {
            status = reader_refuse(reader, &local, NULL, "must have as many dimensions as global");
        }
    }
    return status;
}

/* The keys that make a variant another than its form. */
static bool changes_something(const json_node *node)
{
    static const char *const keys[] = {"source", "entry", "defines", "options", "launch"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (json_object_get(node->json, keys[i]) != NULL) {
            return true;
        }
    }
    return false;
}

/* A kernel that is compiled into the command can be launched in another shape, no more. */
static kiln_status check_builtin(const cli_reader *reader, const json_node *node)
{
    static const char *const keys[] = {"source", "defines", "options"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        json_node value = reader_get(node, keys[i]);
        if (value.json != NULL) {
            return reader_refuse(reader, &value, NULL, "has no meaning for a built-in kernel");
        }
    }
    return KILN_OK;
}

static kiln_status read_variant(const cli_reader *reader, const json_node *node,
                                const cli_kernel *kernel, const kernel_form *form,
                                kernel_variant *variant)
{
    static const char *const keys[] = {"name",    "source", "entry", "defines",
                                       "options", "launch", NULL};
    json_node source = reader_get(node, "source");
    json_node entry = reader_get(node, "entry");
    json_node options = reader_get(node, "options");
    kiln_status status = reader_check_object(reader, node, keys);
    variant->path = form->path;
    variant->entry = form->entry;
    variant->shape = form->shape;
    variant->options = form->options;
    variant->option_count = form->option_count;
    if (status == KILN_OK && !changes_something(node)) {
        status = reader_refuse(reader, node, "give defines, launch, source, entry or options",
                               "changes nothing");
    }
    if (status == KILN_OK) {
        status = read_name(reader, node, form->variants, form->variant_count, &variant->name);
    }
    if (status == KILN_OK && form->language == KILN_LANG_BUILTIN) {
        status = check_builtin(reader, node);
    }
    if (status == KILN_OK && source.json != NULL) {
        status = reader_path(reader, &source, &variant->path);
    }
    if (status == KILN_OK && entry.json != NULL) {
        status = reader_text(reader, &entry, &variant->entry);
    }
    if (status == KILN_OK) {
        status = reader_texts(reader, &options, false, &variant->options, &variant->option_count);
    }
    if (status == KILN_OK) {
        status = read_defines(reader, node, kernel, variant);
    }
    return status == KILN_OK ? read_variant_launch(reader, node, variant) : status;
}

/* --- the lists -------------------------------------------------------------------------------- */

static kiln_status read_list(const cli_reader *reader, const json_node *list,
                             const cli_kernel *kernel, kernel_form *form)
{
    size_t count = json_array_size(list->json);
    if (!json_is_array(list->json) || count == 0) {
        return reader_refuse(reader, list, NULL, "must be an array of variants, and not empty");
    }
    kernel_variant *variants = pool_array(reader->pool, count, sizeof(*variants));
    if (variants == NULL) {
        return reader_no_memory(reader);
    }
    form->variants = variants;
    for (size_t i = 0; i < count; i++) {
        json_node node = reader_at(list, i);
        kiln_status status = read_variant(reader, &node, kernel, form, &variants[i]);
        if (status != KILN_OK) {
            return status;
        }
        form->variant_count++;
    }
    return KILN_OK;
}

/* Names of the cache's entries are made of them. */
static bool is_plain_name(const char *name)
{
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "0123456789._-");
    return length <= 64 && name[length] == '\0';
}

static kiln_status read_variants(const cli_reader *reader, const json_node *kernel_node,
                                 cli_kernel *kernel)
{
    json_node variants = reader_get(kernel_node, "variants");
    size_t total = kernel->form_count;
    if (variants.json == NULL) {
        return KILN_OK;
    }
    if (!json_is_object(variants.json)) {
        return reader_refuse(reader, &variants, NULL, "must be an object, by language");
    }
    kiln_status status = manifest_check_languages(reader, &variants);
    if (status == KILN_OK && !is_plain_name(kernel->name)) {
        json_node name = reader_get(kernel_node, "name");
        status = reader_refuse(reader, &name, NULL,
                               "must be at most 64 letters, digits, '.', '-' "
                               "and '_' where there are variants");
    }
    for (size_t i = 0; i < kernel->form_count && status == KILN_OK; i++) {
        kernel_form *form = &kernel->forms[i];
        /* What is built in is not compiled: only variants that are its own are for it. */
        json_node list = form->language == KILN_LANG_BUILTIN
                             ? reader_get(&variants, "builtin")
                             : manifest_for_language(&variants, form->language);
        if (list.json != NULL) {
            status = read_list(reader, &list, kernel, form);
        }
        total += form->variant_count;
        if (status == KILN_OK && total > KILN_VARIANTS_MAX) {
            status = reader_refuse(reader, &list, NULL, "is too much: %u variants are the most",
                                   KILN_VARIANTS_MAX);
        }
    }
    return status;
}

/* --- amounts ---------------------------------------------------------------------------------- */

/* A number, or an expression of the arguments. */
static kiln_status read_amount(const cli_reader *reader, const json_node *node,
                               const cli_kernel *kernel, const char **out_text)
{
    double value = 0;
    expression_error error = {0};
    if (json_is_number(node->json)) {
        *out_text = pool_format(reader->pool, "%.17g", json_number_value(node->json));
        if (*out_text == NULL) {
            return reader_no_memory(reader);
        }
    } else {
        kiln_status status = reader_text(reader, node, out_text);
        if (status != KILN_OK) {
            return status;
        }
    }
    if (!expression_evaluate(*out_text, kernel, &value, &error)) {
        return reader_refuse(reader, node, NULL, "character %zu: %s", error.at + 1, error.why);
    }
    return KILN_OK;
}

static kiln_status read_sizes(const cli_reader *reader, const json_node *kernel_node,
                              cli_kernel *kernel)
{
    json_node sizes = reader_get(kernel_node, "size");
    size_t count = json_array_size(sizes.json);
    kiln_status status = KILN_OK;
    if (sizes.json == NULL) {
        return KILN_OK;
    }
    if (!json_is_array(sizes.json) || count == 0 || count > KERNEL_MAX_SIZES) {
        return reader_refuse(reader, &sizes, NULL,
                             "must be an array of 1 to 8 numbers or expressions");
    }
    for (size_t i = 0; i < count && status == KILN_OK; i++) {
        json_node size = reader_at(&sizes, i);
        status = read_amount(reader, &size, kernel, &kernel->sizes[i]);
    }
    kernel->size_count = count;
    return status;
}

kiln_status manifest_read_tuning(const cli_reader *reader, const json_node *kernel_node,
                                 cli_kernel *kernel)
{
    json_node flops = reader_get(kernel_node, "flops");
    json_node bytes = reader_get(kernel_node, "bytes");
    kiln_status status = read_variants(reader, kernel_node, kernel);
    if (status == KILN_OK) {
        status = read_sizes(reader, kernel_node, kernel);
    }
    if (status == KILN_OK && flops.json != NULL) {
        status = read_amount(reader, &flops, kernel, &kernel->flops);
    }
    if (status == KILN_OK && bytes.json != NULL) {
        status = read_amount(reader, &bytes, kernel, &kernel->bytes);
    }
    return status;
}
