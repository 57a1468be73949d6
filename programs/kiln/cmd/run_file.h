/* `kiln run FILE`: the options that describe one kernel file. */
#ifndef KILN_PROGRAM_RUN_FILE_H
#define KILN_PROGRAM_RUN_FILE_H

#include "cli/opt.h"
#include "kernel/kernel.h"

typedef struct run_file_options {
    const char *entry;
    const char *language;
    opt_list args;
    const char *global;
    const char *local;
    opt_list defines;
    opt_list include_dirs;
    opt_list compiler_options;
    opt_list saves;
    opt_list expects;
} run_file_options;

/* Rows for a table whose struct holds a run_file_options named `file`. */
// clang-format off
#define RUN_FILE_ROWS(type)                                                                        \
    {"entry", 'e', OPT_TEXT, offsetof(type, file.entry), "NAME",                                   \
     "file: the kernel (not needed where there is one)"},                                          \
    {"arg", 0, OPT_LIST, offsetof(type, file.args), "ARG",                                         \
     "file: an argument, in order; forms above"},                                                  \
    {"global", 'g', OPT_TEXT, offsetof(type, file.global), "X[xYxZ]", "file: work-items"},         \
    {"local", 'l', OPT_TEXT, offsetof(type, file.local), "X[xYxZ]",                                \
     "file: work-items in a group (default: chosen)"},                                             \
    {NULL, 'D', OPT_LIST, offsetof(type, file.defines), "NAME[=VALUE]", "file: define a macro"},   \
    {NULL, 'I', OPT_LIST, offsetof(type, file.include_dirs), "DIR",                                \
     "file: look for headers in DIR"},                                                             \
    {"option", 'X', OPT_LIST, offsetof(type, file.compiler_options), "OPTION",                     \
     "file: pass OPTION to the compiler"},                                                         \
    {"language", 'x', OPT_TEXT, offsetof(type, file.language), "NAME",                             \
     "file: c, opencl-c, ... (default: by its name)"},                                             \
    {"save", 0, OPT_LIST, offsetof(type, file.saves), "N=FILE",                                    \
     "file: write argument N (from 0) to FILE, the bytes as they are"},                            \
    {"expect", 0, OPT_LIST, offsetof(type, file.expects), "N=FILE",                                \
     "file: argument N must come out as in FILE"}
// clang-format on

/* Refuses options that do not go with what is to be run. */
kiln_status run_file_check(const run_file_options *options, bool is_manifest, kiln_diag *diag);

/* Fills `kernel` from the options. KILN_E_INVALID, KILN_E_NOMEM. */
kiln_status run_file_describe(const run_file_options *options, const char *path, cli_pool *pool,
                              cli_kernel *kernel, kiln_diag *diag);

#endif
