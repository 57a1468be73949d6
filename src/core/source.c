/* Sources: checking what a caller gave, and saying it in a recipe. */
#include "core/source.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "sys/file.h"

static kiln_status refuse(const kiln_source *source, const char *why, kiln_diag *diag)
{
    return kiln_diag_set(diag, KILN_E_INVALID, "start from KILN_SOURCE_INIT",
                         source->name != NULL ? source->name : "a source", "%s", why);
}

static kiln_status check_lists(const kiln_source *source, kiln_diag *diag)
{
    if ((source->define_count > 0 && source->defines == NULL) ||
        (source->option_count > 0 && source->options == NULL) ||
        (source->include_dir_count > 0 && source->include_dirs == NULL) ||
        (source->header_count > 0 && source->headers == NULL) ||
        (source->entry_count > 0 && source->entries == NULL) ||
        (source->builtin_count > 0 && source->builtin == NULL)) {
        return refuse(source, "a list is missing that has a count", diag);
    }
    for (size_t i = 0; i < source->define_count; i++) {
        const char *name = source->defines[i].name;
        if (name == NULL || name[0] == '\0' || strchr(name, '=') != NULL) {
            return refuse(source, "a definition has no name, or '=' in it", diag);
        }
    }
    for (size_t i = 0; i < source->option_count; i++) {
        if (source->options[i] == NULL) {
            return refuse(source, "an option is NULL", diag);
        }
    }
    for (size_t i = 0; i < source->include_dir_count; i++) {
        if (source->include_dirs[i] == NULL || source->include_dirs[i][0] == '\0') {
            return refuse(source, "an include directory is empty", diag);
        }
    }
    for (size_t i = 0; i < source->header_count; i++) {
        if (source->headers[i].name == NULL ||
            (source->headers[i].text == NULL && source->headers[i].length > 0)) {
            return refuse(source, "a header in memory has no name or no text", diag);
        }
    }
    for (size_t i = 0; i < source->entry_count; i++) {
        if (source->entries[i] == NULL || source->entries[i][0] == '\0') {
            return refuse(source, "an entry is empty", diag);
        }
    }
    return KILN_OK;
}

static kiln_status check_source(const kiln_source *source, kiln_diag *diag)
{
    if (source->struct_size < sizeof(kiln_source)) {
        return kiln_diag_set(diag, KILN_E_INVALID, "start from KILN_SOURCE_INIT", "a source",
                             "its struct_size is %zu", source->struct_size);
    }
    if (source->language == KILN_LANG_NONE) {
        return refuse(source, "its language is not set", diag);
    }
    if (source->language == KILN_LANG_BUILTIN) {
        return source->builtin_count > 0 ? check_lists(source, diag)
                                         : refuse(source, "it has no kernels", diag);
    }
    if (source->text == NULL || source->length == 0) {
        return refuse(source, "its text is empty", diag);
    }
    return check_lists(source, diag);
}

kiln_status kn_source_resolve(const kiln_source *source, kn_resolved *out_resolved, kiln_diag *diag)
{
    memset(out_resolved, 0, sizeof(*out_resolved));
    kiln_status status = check_source(source, diag);
    if (status != KILN_OK) {
        return status;
    }
    kn_resolved resolved = {.source = *source};
    resolved.reduced.struct_size = sizeof(kiln_source);
    resolved.reduced.language = source->language;
    resolved.reduced.name = source->name;
    resolved.reduced.entries = source->entries;
    resolved.reduced.entry_count = source->entry_count;
    if (source->name != NULL && strchr(source->name, '/') != NULL) {
        resolved.folder = kn_path_folder(source->name);
        resolved.include_dirs =
            (const char **)calloc(source->include_dir_count + 1, sizeof(const char *));
        if (resolved.folder == NULL || resolved.include_dirs == NULL) {
            kn_resolved_deinit(&resolved);
            return kiln_diag_set(diag, KILN_E_NOMEM, NULL, source->name, "out of memory");
        }
        resolved.include_dirs[0] = resolved.folder;
        for (size_t i = 0; i < source->include_dir_count; i++) {
            resolved.include_dirs[i + 1] = source->include_dirs[i];
        }
        resolved.source.include_dirs = resolved.include_dirs;
        resolved.source.include_dir_count = source->include_dir_count + 1;
    }
    *out_resolved = resolved;
    return KILN_OK;
}

void kn_resolved_deinit(kn_resolved *resolved)
{
    free(resolved->include_dirs);
    free(resolved->folder);
    memset(resolved, 0, sizeof(*resolved));
}

static kiln_status add_text(kiln_recipe *recipe, const char *name, const char *text,
                            kiln_diag *diag)
{
    return kiln_recipe_add_text(recipe, name, text, strlen(text), diag);
}

kiln_status kn_source_add_entries(const kiln_source *source, kiln_recipe *recipe, kiln_diag *diag)
{
    kiln_status status = KILN_OK;
    for (size_t i = 0; status == KILN_OK && i < source->entry_count; i++) {
        status = add_text(recipe, "entry", source->entries[i], diag);
    }
    return status;
}

kiln_status kn_source_add_to(const kiln_source *source, kiln_recipe *recipe, kiln_diag *diag)
{
    kiln_status status = add_text(recipe, "language", kiln_language_name(source->language), diag);
    if (status == KILN_OK) {
        status = kiln_recipe_add_bytes(recipe, "source", source->text, source->length, diag);
    }
    for (size_t i = 0; status == KILN_OK && i < source->define_count; i++) {
        /* -DNAME and -DNAME=1 are the same to every compiler. */
        const char *value = source->defines[i].value;
        status = add_text(recipe, "define", source->defines[i].name, diag);
        if (status == KILN_OK) {
            status = add_text(recipe, "define.value", value != NULL ? value : "1", diag);
        }
    }
    for (size_t i = 0; status == KILN_OK && i < source->option_count; i++) {
        status = add_text(recipe, "option", source->options[i], diag);
    }
    return status;
}
