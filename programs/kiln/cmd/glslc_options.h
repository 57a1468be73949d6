/* Options as glslc spells them, so that a build system can call kiln compile in its place. */
#ifndef KILN_PROGRAM_GLSLC_OPTIONS_H
#define KILN_PROGRAM_GLSLC_OPTIONS_H

#include <kiln/kiln.h>

#include "cli/opt.h"
#include "cli/pool.h"
#include "kernel/source_file.h"

typedef struct glslc_options {
    const char *stage, *version, *environment, *spirv;
    bool optimise, not_optimise, optimise_size, debug, no_warnings, warnings_fail, compile_only;
    bool depfile;
    const char *depfile_path, *depfile_target;
} glslc_options;

/* Rows for a table whose struct holds a glslc_options named `glslc`. */
// clang-format off
#define GLSLC_ROWS(type)                                                                           \
    {"-MD", 0, OPT_FLAG, offsetof(type, glslc.depfile), NULL,                                      \
     "list the headers for make and ninja, in OUTPUT.d"},                                          \
    {"-MF", 0, OPT_TEXT, offsetof(type, glslc.depfile_path), "FILE", "list them in FILE"},         \
    {"-MT", 0, OPT_TEXT, offsetof(type, glslc.depfile_target), "TARGET",                           \
     "as what TARGET depends on (default: OUTPUT)"},                                               \
    {"-fshader-stage=", 0, OPT_TEXT, offsetof(type, glslc.stage), "STAGE",                         \
     "GLSL: compute or comp, the only one"},                                                       \
    {"-std=", 0, OPT_TEXT, offsetof(type, glslc.version), "VERSION",                               \
     "GLSL: 450core in place of #version"},                                                        \
    {"target-env", 0, OPT_TEXT, offsetof(type, glslc.environment), "ENV",                          \
     "GLSL: vulkan1.0 to vulkan1.3 (default vulkan1.1)"},                                          \
    {"target-spv", 0, OPT_TEXT, offsetof(type, glslc.spirv), "VERSION",                            \
     "GLSL: spv1.0 to spv1.6 (default: by --target-env)"},                                         \
    {"-O", 0, OPT_FLAG, offsetof(type, glslc.optimise), NULL,                                      \
     "GLSL: for speed (the default, but not for -MD, -c, -fshader-stage)"},                        \
    {"-O0", 0, OPT_FLAG, offsetof(type, glslc.not_optimise), NULL, "GLSL: not at all"},            \
    {"-Os", 0, OPT_FLAG, offsetof(type, glslc.optimise_size), NULL, "GLSL: for size"},             \
    {"-g", 0, OPT_FLAG, offsetof(type, glslc.debug), NULL, "GLSL: with debug information"},        \
    {"-w", 0, OPT_FLAG, offsetof(type, glslc.no_warnings), NULL, "GLSL: without warnings"},        \
    {"-Werror", 0, OPT_FLAG, offsetof(type, glslc.warnings_fail), NULL,                            \
     "GLSL: warnings are errors"},                                                                 \
    {"-c", 0, OPT_FLAG, offsetof(type, glslc.compile_only), NULL,                                  \
     "as glslc: compile only, which kiln always does"}
// clang-format on

/* Whether kiln stands in for glslc: it prints no table then, and makes SPIR-V. */
bool glslc_is_meant(const glslc_options *options);

/* Adds the options for the compiler to `file`, and the language where -fshader-stage says it.
 * `output` (may be NULL) and `files` are for the checks. KILN_E_INVALID, KILN_E_NOMEM. */
kiln_status glslc_apply(const glslc_options *options, const char *output, const opt_list *files,
                        cli_pool *pool, source_file_options *file, kiln_diag *diag);

/* Where the list of headers goes; NULL with *out_good true if none is wanted. */
const char *glslc_depfile(const glslc_options *options, const char *output, cli_pool *pool,
                          bool *out_good);

#endif
