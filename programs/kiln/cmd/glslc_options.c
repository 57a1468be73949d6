/* glslc's options become options of kiln's GLSL compiler, which spells them alike. */
#include "cmd/glslc_options.h"

#include <stdio.h>
#include <string.h>

#include "cli/diag.h"

bool glslc_is_meant(const glslc_options *options)
{
    return options->stage != NULL || options->version != NULL || options->depfile ||
           options->depfile_path != NULL || options->compile_only;
}

static const char *first_of_glsl(const glslc_options *options)
{
    const struct {
        bool given;
        const char *name;
    } rows[] = {{options->version != NULL, "-std="},
                {options->environment != NULL, "--target-env"},
                {options->spirv != NULL, "--target-spv"},
                {options->optimise, "-O"},
                {options->not_optimise, "-O0"},
                {options->optimise_size, "-Os"},
                {options->debug, "-g"},
                {options->no_warnings, "-w"},
                {options->warnings_fail, "-Werror"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].given) {
            return rows[i].name;
        }
    }
    return NULL;
}

/* Of MD, c and fshader-stage one is given, by a build that calls glslc. */
static bool stands_for_glslc(const glslc_options *options)
{
    return options->stage != NULL || options->depfile || options->compile_only;
}

static bool has_beginning(const opt_list *list, const char *beginning)
{
    bool found = false;
    for (size_t i = 0; i < list->count; i++) {
        found = found || strncmp(list->items[i], beginning, strlen(beginning)) == 0;
    }
    return found;
}

/* A build that gives no -O wants none: there are drivers that do not bear what the optimiser makes.
 */
static glslc_options with_defaults(const glslc_options *options, const opt_list *others)
{
    glslc_options all = *options;
    all.not_optimise =
        all.not_optimise || (!all.optimise && !all.optimise_size && !has_beginning(others, "-O"));
    if (all.environment == NULL && all.spirv == NULL && !has_beginning(others, "--target-")) {
        all.environment = "vulkan1.0";
    }
    return all;
}

static bool are_glsl(const source_file_options *file, const opt_list *files)
{
    bool glsl = files->count > 0;
    for (size_t i = 0; i < files->count; i++) {
        kiln_language language = KILN_LANG_NONE;
        glsl = glsl &&
               source_file_language(file->language, files->items[i], &language, NULL) == KILN_OK &&
               language == KILN_LANG_GLSL;
    }
    return glsl;
}

/* -O of GLSL is not -O of OpenCL: there it goes to the compiler as it is written, with -X. */
static kiln_status check_language(const glslc_options *options, const source_file_options *file,
                                  const char *path, kiln_diag *diag)
{
    const char *name = first_of_glsl(options);
    kiln_language language = KILN_LANG_NONE;
    kiln_status status = source_file_language(file->language, path, &language, diag);
    if (status == KILN_OK && name != NULL && language != KILN_LANG_GLSL) {
        char fix[96];
        (void)snprintf(fix, sizeof(fix), "if it is for the compiler, pass it with -X: -X %s%s",
                       name, options->version != NULL ? options->version : "");
        return kiln_diag_set(diag, KILN_E_INVALID, fix, name, "is for GLSL, and %.100s is %s", path,
                             kiln_language_name(language));
    }
    return status;
}

static kiln_status check_glslc_options(const glslc_options *options, const char *output,
                                       const opt_list *files, kiln_diag *diag)
{
    const char *stage = options->stage;
    const bool lists = options->depfile || options->depfile_path != NULL;
    if (stage != NULL && strcmp(stage, "compute") != 0 && strcmp(stage, "comp") != 0) {
        return kiln_diag_set(diag, KILN_E_INVALID, "use glslc for graphics",
                             "-fshader-stage=", "\"%.40s\": kiln compiles compute shaders only",
                             stage);
    }
    if (lists && (files->count != 1 || (output == NULL && options->depfile_path == NULL))) {
        return kiln_diag_set(diag, KILN_E_INVALID, "give one file, and -o OUTPUT", "-MD",
                             "lists the headers of one output");
    }
    if (lists && !options->depfile) {
        return kiln_diag_set(diag, KILN_E_INVALID, "give -MD, too", "-MF",
                             "says only where the list goes");
    }
    if (options->compile_only && output == NULL) {
        return kiln_diag_set(diag, KILN_E_INVALID, "give -o OUTPUT", "-c", "has no output");
    }
    return KILN_OK;
}

typedef struct text_row {
    const char *name, *value;
} text_row;

static bool append_glslc_options(opt_list *list, const glslc_options *options, cli_pool *pool)
{
    const text_row texts[] = {{"-std=", options->version},
                              {"--target-env=", options->environment},
                              {"--target-spv=", options->spirv}};
    const struct {
        bool given;
        const char *name;
    } flags[] = {{options->optimise, "-O"},       {options->not_optimise, "-O0"},
                 {options->optimise_size, "-Os"}, {options->debug, "-g"},
                 {options->no_warnings, "-w"},    {options->warnings_fail, "-Werror"}};
    const size_t most = list->count + 9;
    const char **items = pool_array(pool, most, sizeof(*items));
    if (items == NULL) {
        return false;
    }
    for (size_t i = 0; i < list->count; i++) {
        items[i] = list->items[i];
    }
    list->items = items;
    for (size_t i = 0; i < 3; i++) {
        if (texts[i].value != NULL) {
            items[list->count] = pool_format(pool, "%s%s", texts[i].name, texts[i].value);
            if (items[list->count++] == NULL) {
                return false;
            }
        }
    }
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        if (flags[i].given) {
            items[list->count++] = flags[i].name;
        }
    }
    return true;
}

kiln_status glslc_apply(const glslc_options *options, const char *output, const opt_list *files,
                        cli_pool *pool, source_file_options *file, kiln_diag *diag)
{
    kiln_status status = check_glslc_options(options, output, files, diag);
    if (status == KILN_OK && options->stage != NULL && file->language == NULL) {
        file->language = "glsl";
    }
    for (size_t i = 0; status == KILN_OK && i < files->count; i++) {
        status = first_of_glsl(options) != NULL
                     ? check_language(options, file, files->items[i], diag)
                     : KILN_OK;
    }
    const glslc_options all = stands_for_glslc(options) && are_glsl(file, files)
                                  ? with_defaults(options, &file->compiler_options)
                                  : *options;
    if (status == KILN_OK && !append_glslc_options(&file->compiler_options, &all, pool)) {
        status = diag_no_memory(diag, "options");
    }
    return status;
}

const char *glslc_depfile(const glslc_options *options, const char *output, cli_pool *pool,
                          bool *out_good)
{
    *out_good = true;
    if (!options->depfile) {
        return NULL;
    }
    if (options->depfile_path != NULL) {
        return options->depfile_path;
    }
    const char *path = pool_format(pool, "%s.d", output);
    *out_good = path != NULL;
    return path;
}
