/* The options of the C compiler: those that kiln gives, and what those of a source mean for the
 * key (options.c). */
#include <stdlib.h>
#include <string.h>

#include "apis/cpu/backend/compiler.h"
#include "apis/cpu/backend/object.h"
#include "base/text.h"
#include "sys/env.h"
#include "sys/file.h"

/* Value-safe options only: results are those of plain C, errno and traps aside. What makes an
 * object of it comes after them. */
static const char *const fixed[] = {
    "-std=c17",
    "-O3",
    "-fno-math-errno",
    "-fno-trapping-math",
};

static void append_flag(kn_strbuf *flags, const char *flag)
{
    kn_strbuf_append(flags, flag, strlen(flag) + 1);
}

void kn_cpu_flags_fixed(const char *version, kn_strbuf *flags)
{
    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
        append_flag(flags, fixed[i]);
    }
    for (size_t i = 0; kn_cpu_object_flags[i] != NULL; i++) {
        append_flag(flags, kn_cpu_object_flags[i]);
    }
    const char *more = kn_cpu_object_flag_for(version);
    if (more != NULL) {
        append_flag(flags, more);
    }
}

void kn_cpu_flags_join(const kn_strbuf *flags, kn_strbuf *line)
{
    const char *text = kn_strbuf_text(flags);
    for (size_t at = 0; at < flags->length; at += strlen(text + at) + 1) {
        kn_strbuf_append_text(line, at == 0 ? "" : " ");
        kn_strbuf_append_text(line, text + at);
    }
}

/* What compilers read without an option: gcc a precompiled form of its own first header, clang a
 * map of headers in the place of an include directory. */
static const char *find_dir_reason(const kiln_source *source)
{
    const char *reason = NULL;
    for (size_t i = 0; i < source->include_dir_count && reason == NULL; i++) {
        kn_file_facts facts;
        char *path = kn_path_join(source->include_dirs[i], "stdc-predef.h.gch");
        if (path == NULL || kn_file_stat(path, true, &facts, NULL) == KILN_OK) {
            reason = "gcc would take the stdc-predef.h.gch of an include directory";
        }
        free(path);
        if (kn_file_stat(source->include_dirs[i], true, &facts, NULL) == KILN_OK &&
            facts.kind != KN_FILE_DIR) {
            reason = "an include directory is a file, which clang may take for a header map";
        }
    }
    return reason;
}

/* Variables by which gcc and its linker find parts of themselves that no key names, or write files
 * that a hit would not write. */
static const char *find_variable_reason(void)
{
    static const struct {
        const char *name, *reason;
    } variables[] = {
        {"CCC_OVERRIDE_OPTIONS", "CCC_OVERRIDE_OPTIONS may give clang options that name files"},
        {"GCC_EXEC_PREFIX", "GCC_EXEC_PREFIX may lead gcc to other programs and specs"},
        {"GCC_ROOT", "GCC_ROOT may lead gcc to other programs and specs"},
        {"BINUTILS_ROOT", "BINUTILS_ROOT may lead gcc to other programs and specs"},
        {"LPATH", "LPATH may lead gcc to other specs"},
        {"DEPENDENCIES_OUTPUT", "DEPENDENCIES_OUTPUT has the compiler write a file"},
        {"SUNPRO_DEPENDENCIES", "SUNPRO_DEPENDENCIES has the compiler write a file"},
    };
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        if (kn_env_get(variables[i].name) != NULL) {
            return variables[i].reason;
        }
    }
    return NULL;
}

/* A directory that depends on the current one: what is there now need not be there later. */
static const char *find_relative_reason(void)
{
    const char *list = kn_env_get("COMPILER_PATH");
    const char *dir = NULL;
    size_t length = 0;
    bool absolute = true;
    while (absolute && kn_cpu_next_dir(&list, &dir, &length, &absolute)) {
    }
    return absolute ? NULL : "COMPILER_PATH has a directory that is not absolute";
}

static const char *find_wrapper_reason(cpu_instance *cpu)
{
    const cpu_toolchain *toolchain = NULL;
    return kn_cpu_toolchain_get(&cpu->tools, &toolchain, NULL) == KILN_OK && toolchain->indirect
               ? "the C compiler is a script or starts another one (set KILN_CC to that one)"
               : NULL;
}

/* gcc reads a file "specs" wherever it looks for libraries. */
static const char *find_specs_reason(void)
{
    const char *list = kn_env_get("LIBRARY_PATH");
    const char *given = NULL;
    const char *reason = NULL;
    size_t length = 0;
    bool absolute = false;
    while (reason == NULL && kn_cpu_next_dir(&list, &given, &length, &absolute)) {
        char *dir = length > 0 ? kn_text_copy_n(given, length) : kn_text_copy(".");
        char *path = dir != NULL ? kn_path_join(dir, "specs") : NULL;
        kn_file_facts facts;
        if (path == NULL || kn_file_stat(path, true, &facts, NULL) == KILN_OK) {
            reason = "a directory of LIBRARY_PATH has a file specs, which gcc reads";
        }
        free(path);
        free(dir);
    }
    return reason;
}

const char *kn_cpu_uncacheable_option(void *instance, const kiln_source *source)
{
    kn_cpu_option_facts facts;
    kn_cpu_options_read(source->options, source->option_count, &facts);
    const char *reason = facts.reason != NULL ? facts.reason : find_variable_reason();
    reason = reason != NULL ? reason : find_specs_reason();
    reason = reason != NULL ? reason : find_relative_reason();
    reason = reason != NULL ? reason : find_wrapper_reason((cpu_instance *)instance);
    return reason != NULL ? reason : find_dir_reason(source);
}

uint32_t kn_cpu_option_effects(void *instance, const kiln_source *source)
{
    kn_cpu_option_facts facts;
    (void)instance;
    kn_cpu_options_read(source->options, source->option_count, &facts);
    return facts.names ? KILN_OPTION_NAMES : 0;
}
