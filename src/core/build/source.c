/* Sources: checking what a caller gave, and saying it in a recipe. */
#include "core/build/source.h"

#include <stdlib.h>
#include <string.h>

#include "kiln/unstable/names.h"

#include "base/diag.h"
#include "base/text.h"
#include "key/recipe.h"
#include "sized/sized.h"
#include "sys/file.h"

static kiln_status refuse_source(const kiln_source *source, const char *why, kiln_diag *diag)
{
    return kiln_diag_set(diag, KILN_E_INVALID, "start from KILN_SOURCE_INIT",
                         source->name != NULL ? source->name : "a source", "%s", why);
}

static bool is_empty(const char *text)
{
    return text == NULL || text[0] == '\0';
}

/* The first of `count` texts that is missing or, unless allowed, empty. */
static bool texts_sound(const char *const *texts, size_t count, bool may_be_empty)
{
    for (size_t i = 0; i < count; i++) {
        if (texts[i] == NULL || (!may_be_empty && texts[i][0] == '\0')) {
            return false;
        }
    }
    return true;
}

static bool headers_sound(const kiln_source *source)
{
    for (size_t i = 0; i < source->header_count; i++) {
        const kiln_header *header = &source->headers[i];
        if (is_empty(header->name) || (header->text == NULL && header->length > 0)) {
            return false;
        }
    }
    return true;
}

static bool defines_sound(const kiln_source *source)
{
    for (size_t i = 0; i < source->define_count; i++) {
        const char *name = source->defines[i].name;
        if (is_empty(name) || strchr(name, '=') != NULL) {
            return false;
        }
    }
    return true;
}

static kiln_status check_lists(const kiln_source *source, kiln_diag *diag)
{
    const struct {
        const void *list;
        size_t count;
    } lists[] = {
        {source->defines, source->define_count},
        {source->options, source->option_count},
        {source->include_dirs, source->include_dir_count},
        {source->headers, source->header_count},
        {source->entries, source->entry_count},
        {source->builtin, source->builtin_count},
    };
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        if (lists[i].count > 0 && lists[i].list == NULL) {
            return refuse_source(source, "a list is missing that has a count", diag);
        }
    }
    if (!defines_sound(source)) {
        return refuse_source(source, "a definition has no name, or '=' in it", diag);
    }
    if (!texts_sound(source->options, source->option_count, true)) {
        return refuse_source(source, "an option is NULL", diag);
    }
    if (!texts_sound(source->include_dirs, source->include_dir_count, false)) {
        return refuse_source(source, "an include directory is empty", diag);
    }
    if (!headers_sound(source)) {
        return refuse_source(source, "a header in memory has no name or no text", diag);
    }
    if (!texts_sound(source->entries, source->entry_count, false)) {
        return refuse_source(source, "an entry is empty", diag);
    }
    return KILN_OK;
}

kiln_status kn_source_check(const kiln_source *source, kiln_diag *diag)
{
    if (source->language == KILN_LANG_NONE) {
        return refuse_source(source, "its language is not set", diag);
    }
    if (source->language == KILN_LANG_BUILTIN) {
        return source->builtin_count > 0 ? check_lists(source, diag)
                                         : refuse_source(source, "it has no kernels", diag);
    }
    if (source->text == NULL || source->length == 0) {
        const char *name = source->name != NULL ? source->name : "source";
        return source->text != NULL
                   ? kiln_diag_set(diag, KILN_E_INVALID, "give a source with text in it", name,
                                   "the source is empty")
                   : refuse_source(source, "its text is not set", diag);
    }
    return check_lists(source, diag);
}

/* `dir` in front of the source's include dirs; NULL when out of memory. */
static const char **prepend_dir(const char *dir, const kiln_source *source)
{
    const char **dirs = (const char **)calloc(source->include_dir_count + 1, sizeof(const char *));
    if (dirs == NULL) {
        return NULL;
    }
    dirs[0] = dir;
    for (size_t i = 0; i < source->include_dir_count; i++) {
        dirs[i + 1] = source->include_dirs[i];
    }
    return dirs;
}

kiln_status kn_source_resolve(const kiln_source *source, kn_resolved *out_resolved, kiln_diag *diag)
{
    kiln_source room;
    memset(out_resolved, 0, sizeof(*out_resolved));
    source = kn_sized_view(KN_SIZED(kiln_source), source, &room, diag);
    kiln_status status = source != NULL ? kn_source_check(source, diag) : KILN_E_INVALID;
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
        resolved.dir = kn_path_dir(source->name);
        resolved.include_dirs = prepend_dir(resolved.dir, source);
        if (resolved.dir == NULL || resolved.include_dirs == NULL) {
            kn_resolved_deinit(&resolved);
            return kn_no_memory(diag, source->name);
        }
        resolved.source.include_dirs = resolved.include_dirs;
        resolved.source.include_dir_count = source->include_dir_count + 1;
    }
    resolved.searched = resolved.source;
    *out_resolved = resolved;
    return KILN_OK;
}

kiln_status kn_source_search_current(kn_resolved *resolved, kiln_diag *diag)
{
    resolved->searched_dirs = prepend_dir(".", &resolved->source);
    if (resolved->searched_dirs == NULL) {
        return kn_no_memory(diag, "a source");
    }
    resolved->searched.include_dirs = resolved->searched_dirs;
    resolved->searched.include_dir_count = resolved->source.include_dir_count + 1;
    return KILN_OK;
}

void kn_source_search_not_beside(kn_resolved *resolved)
{
    resolved->not_beside = true;
    if (resolved->dir != NULL) {
        resolved->source.include_dirs++; /* it is the first of them */
        resolved->source.include_dir_count--;
        resolved->searched = resolved->source;
    }
}

void kn_resolved_deinit(kn_resolved *resolved)
{
    free(resolved->searched_dirs);
    free(resolved->include_dirs);
    free(resolved->dir);
    memset(resolved, 0, sizeof(*resolved));
}

void kn_source_add_entries(const kiln_source *source, kiln_recipe *recipe)
{
    for (size_t i = 0; i < source->entry_count; i++) {
        kn_recipe_add_string(recipe, "entry", source->entries[i]);
    }
}

void kn_source_add_to(const kiln_source *source, kiln_recipe *recipe)
{
    kn_recipe_add_string(recipe, "language", kiln_language_name(source->language));
    kiln_recipe_add_bytes(recipe, "source", source->text, source->length);
    for (size_t i = 0; i < source->define_count; i++) {
        /* -DNAME and -DNAME=1 are the same to every compiler. */
        const char *value = source->defines[i].value;
        kn_recipe_add_string(recipe, "define", source->defines[i].name);
        kn_recipe_add_string(recipe, "define.value", value != NULL ? value : "1");
    }
    for (size_t i = 0; i < source->option_count; i++) {
        kn_recipe_add_string(recipe, "option", source->options[i]);
    }
}
