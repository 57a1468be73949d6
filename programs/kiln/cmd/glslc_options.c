/* glslc's options become options of kiln's GLSL compiler, which spells them alike. */
#include "cmd/glslc_options.h"

#include <stdio.h>
#include <string.h>

#include <kiln/unstable/names.h>

#include "cli/diag.h"

bool glslc_is_meant(const glslc_options *options)
{
    return options->stage != NULL || options->version != NULL || options->depfile ||
           options->depfile_path != NULL || options->compile_only;
}

/* Options for the compiler, in the order in which it gets them. */
static const struct {
    const char *name;
    size_t offset;
    bool has_value;
} rows[] = {{"-std=", offsetof(glslc_options, version), true},
            {"--target-env=", offsetof(glslc_options, environment), true},
            {"--target-spv=", offsetof(glslc_options, spirv), true},
            {"-O", offsetof(glslc_options, optimise), false},
            {"-O0", offsetof(glslc_options, not_optimise), false},
            {"-Os", offsetof(glslc_options, optimise_size), false},
            {"-g", offsetof(glslc_options, debug), false},
            {"-w", offsetof(glslc_options, no_warnings), false},
            {"-Werror", offsetof(glslc_options, warnings_fail), false}};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

/* The value of a row that is given, "" of a flag; NULL: it is not. */
static const char *value_of(const glslc_options *options, size_t row)
{
    const void *field = (const unsigned char *)options + rows[row].offset;
    if (rows[row].has_value) {
        return *(const char *const *)field;
    }
    return *(const bool *)field ? "" : NULL;
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
    size_t row = 0;
    while (row < ROWS && value_of(options, row) == NULL) {
        row++;
    }
    kiln_language language = KILN_LANG_NONE;
    if (row == ROWS) {
        return KILN_OK;
    }
    kiln_status status = source_file_language(file->language, path, &language, diag);
    if (status == KILN_OK && language != KILN_LANG_GLSL) {
        char fix[96];
        (void)snprintf(fix, sizeof(fix), "if it is for the compiler, pass it with -X: -X %s%.40s",
                       rows[row].name, value_of(options, row));
        return kiln_diag_set(diag, KILN_E_INVALID, fix, rows[row].name,
                             "is for GLSL, and %.100s is %s", path, kiln_language_name(language));
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

static bool append_glslc_options(opt_list *list, const glslc_options *options, cli_pool *pool)
{
    const char **items = pool_array(pool, list->count + ROWS, sizeof(*items));
    for (size_t i = 0; items != NULL && i < list->count; i++) {
        items[i] = list->items[i];
    }
    list->items = items;
    for (size_t i = 0; items != NULL && i < ROWS; i++) {
        const char *value = value_of(options, i);
        if (value != NULL) {
            items[list->count] = pool_format(pool, "%s%s", rows[i].name, value);
            if (items[list->count++] == NULL) {
                return false;
            }
        }
    }
    return items != NULL;
}

kiln_status glslc_apply(const glslc_options *options, const char *output, const opt_list *files,
                        cli_pool *pool, source_file_options *file, kiln_diag *diag)
{
    kiln_status status = check_glslc_options(options, output, files, diag);
    if (status == KILN_OK && options->stage != NULL && file->language == NULL) {
        file->language = "glsl";
    }
    for (size_t i = 0; status == KILN_OK && i < files->count; i++) {
        status = check_language(options, file, files->items[i], diag);
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
