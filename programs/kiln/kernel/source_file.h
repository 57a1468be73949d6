/* The source in a file and the options that describe it, as `kiln compile` and `kiln explain` take
 * them. This file must not know what becomes of the source. */
#ifndef KILN_PROGRAM_SOURCE_FILE_H
#define KILN_PROGRAM_SOURCE_FILE_H

#include <kiln/kiln.h>

#include "cli/opt.h"
#include "cli/pool.h"

typedef struct source_file_options {
    const char *language;
    opt_list entries;
    opt_list defines;
    opt_list include_dirs;
    opt_list compiler_options;
} source_file_options;

/* Rows for a table whose struct holds a source_file_options named `file`; `of` is put before each
 * description. */
#define SOURCE_FILE_ROWS(type, of)                                                                 \
    {NULL, 'I', OPT_LIST, offsetof(type, file.include_dirs), "DIR", of "look for headers in DIR"}, \
        {NULL, 'D', OPT_LIST, offsetof(type, file.defines), "NAME[=VALUE]", of "define a macro"},  \
        {"option", 'X',                                                                            \
         OPT_LIST, offsetof(type, file.compiler_options),                                          \
         "OPTION", of "pass OPTION to the compiler"},                                              \
        {"entry",  'e',                                                                            \
         OPT_LIST, offsetof(type, file.entries),                                                   \
         "NAME",   of "a kernel that must be in the binary (may be repeated)"},                    \
    {                                                                                              \
        "language", 'x', OPT_TEXT, offsetof(type, file.language), "NAME",                          \
            of "c, opencl-c, ... (default: by the file's name)"                                    \
    }

/* NAME[=VALUE] of -D, for a list of them. False: no memory. */
bool source_file_defines(const opt_list *list, cli_pool *pool, const kiln_define **out_defines);

/* The language of a file: by name (`language` may be NULL), else by the file's. */
kiln_status source_file_language(const char *language, const char *path,
                                 kiln_language *out_language, kiln_diag *diag);

/* What to write in place of `name`, which is not a language: the one that was meant, or all. */
void source_file_suggest(const char *name, char *text, size_t size);

/* Everything about the source but its text, named as `path` is written. `defines` are those of the
 * options, and stay the caller's. KILN_E_INVALID: the language. */
kiln_status source_file_describe(const source_file_options *options, const kiln_define *defines,
                                 const char *path, kiln_source *out_source, kiln_diag *diag);

/* Its text, which is the caller's: free(). */
kiln_status source_file_read(const char *path, kiln_source *source, char **out_text,
                             kiln_diag *diag);

#endif
