/* What is said of a file with a source, and what is in it. */
#include "kernel/source_file.h"

#include <string.h>

#include "cli/host.h"

static const size_t max_source = (size_t)64 << 20;

kiln_status source_file_language(const char *language, const char *path,
                                 kiln_language *out_language, kiln_diag *diag)
{
    *out_language = language != NULL ? kiln_language_parse(language) : kiln_language_of_path(path);
    if (*out_language == KILN_LANG_BUILTIN) {
        *out_language = KILN_LANG_NONE; /* not in a file */
    }
    if (*out_language != KILN_LANG_NONE) {
        return KILN_OK;
    }
    if (language != NULL) {
        return kiln_diag_set(diag, KILN_E_INVALID, "c, opencl-c, cuda, glsl, spirv, ptx, ...",
                             "--language", "\"%.60s\" is not a language that kiln knows", language);
    }
    return kiln_diag_set(diag, KILN_E_INVALID, "give --language", path,
                         "its name does not say which language it is in");
}

bool source_file_defines(const opt_list *list, cli_pool *pool, const kiln_define **out_defines)
{
    kiln_define *defines = pool_array(pool, list->count + 1, sizeof(*defines));
    for (size_t i = 0; i < list->count && defines != NULL; i++) {
        const char *text = list->items[i];
        size_t length = strcspn(text, "=");
        defines[i].name = pool_text(pool, text, length);
        defines[i].value = text[length] == '=' ? text + length + 1 : NULL;
        if (defines[i].name == NULL) {
            return false;
        }
    }
    *out_defines = defines;
    return defines != NULL;
}

kiln_status source_file_describe(const source_file_options *options, const kiln_define *defines,
                                 const char *path, kiln_source *out_source, kiln_diag *diag)
{
    *out_source = (kiln_source)KILN_SOURCE_INIT;
    out_source->name = path;
    out_source->defines = defines;
    out_source->define_count = options->defines.count;
    out_source->options = options->compiler_options.items;
    out_source->option_count = options->compiler_options.count;
    out_source->include_dirs = options->include_dirs.items;
    out_source->include_dir_count = options->include_dirs.count;
    out_source->entries = options->entries.items;
    out_source->entry_count = options->entries.count;
    return source_file_language(options->language, path, &out_source->language, diag);
}

kiln_status source_file_read(const char *path, kiln_source *source, char **out_text,
                             kiln_diag *diag)
{
    kiln_status status = host_read_file(path, max_source, out_text, &source->length, diag);
    source->text = *out_text;
    return status;
}
