/* What is said of a file with a source, and what is in it. */
#include "kernel/source_file.h"

#include <stdio.h>
#include <string.h>

#include <kiln/unstable/names.h>

#include "cli/host.h"

static const size_t max_source = (size_t)64 << 20;

/* Those that a file may be in. */
static const struct {
    const char *name;
    const char *aliases; /* what people call it */
} languages[] = {
#define KN_LANGUAGE(id, name, ending, other, form, backends, target, aliases) {name, aliases},
#define KN_LANGUAGE_INTERNAL(...)
#include "base/languages.def"
};
enum { LANGUAGES = sizeof(languages) / sizeof(*languages) };

/* "it is c, cuda or ptx" */
static void list_languages(const char *before, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "%s", before);
    for (size_t i = 0; i < LANGUAGES && used < size; i++) {
        const char *comma = i == 0 ? " " : i + 1 < LANGUAGES ? ", " : " or ";
        used += (size_t)snprintf(text + used, size - used, "%s%s", comma, languages[i].name);
    }
}

void source_file_suggest(const char *name, char *text, size_t size)
{
    const char *names[LANGUAGES + 1] = {NULL};
    const char *near = NULL;
    for (size_t i = 0; i < LANGUAGES; i++) {
        names[i] = languages[i].name;
        near = opt_has_word(languages[i].aliases, name) ? names[i] : near;
    }
    near = near != NULL ? near : opt_nearest(names, name);
    if (near != NULL) {
        (void)snprintf(text, size, "did you mean %s?", near);
    } else {
        list_languages("it is", text, size);
    }
}

/* A file without a suffix that is known. */
static kiln_status refuse_name(const char *path, kiln_diag *diag)
{
    static const char *const graphics[] = {".vert", ".frag", ".geom", ".tesc",  ".tese",
                                           ".mesh", ".task", ".rgen", ".rchit", ".rmiss"};
    const char *dot = strrchr(host_name_of(path), '.');
    if (host_is_dir(path)) {
        return kiln_diag_set(diag, KILN_E_INVALID, "name the files in it", path, "is a directory");
    }
    if (strcmp(path, "-") == 0) {
        return kiln_diag_set(diag, KILN_E_INVALID, "save it to a file, and give that", path,
                             "standard input is not read");
    }
    if (!host_exists(path)) {
        return kiln_diag_set(diag, KILN_E_INVALID, "check the name", path, "no such file");
    }
    for (size_t i = 0; dot != NULL && i < sizeof(graphics) / sizeof(graphics[0]); i++) {
        if (strcmp(dot, graphics[i]) == 0) {
            return kiln_diag_set(diag, KILN_E_INVALID,
                                 "use glslc for graphics; kiln takes GLSL compute shaders", path,
                                 "is a graphics shader");
        }
    }
    if (dot != NULL && strcmp(dot, ".json") == 0) {
        return kiln_diag_set(diag, KILN_E_INVALID, "kiln run and kiln warm take manifests", path,
                             "is a manifest by its name, not a kernel file");
    }
    char fix[160];
    list_languages("give --language", fix, sizeof(fix));
    return kiln_diag_set(diag, KILN_E_INVALID, fix, path,
                         "its name does not say which language it is in");
}

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
        char fix[160];
        source_file_suggest(language, fix, sizeof(fix));
        return kiln_diag_set(diag, KILN_E_INVALID, fix, "--language",
                             "\"%.60s\" is not a language that kiln knows", language);
    }
    return refuse_name(path, diag);
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
