/* The options of the C compiler: those that kiln gives, and those of a source that cannot be
 * followed. An option is cacheable when it is known to name no file and nothing of this machine;
 * the list says what is known, everything else is left out of the cache. */
#include <string.h>

#include "backends/cpu/compiler.h"
#include "base/text.h"

/* Value-safe options only: results are those of plain C, errno and traps aside. The object is
 * linked completely, so that a missing function is an error with a log and not a refusal at load;
 * and it is one page of code and data rather than four of padding, which is a fifth of the size and
 * two thirds of the load. */
static const char *const fixed[] = {
    "-std=c17",
    "-O3",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-nostartfiles",
    "-pipe",
    "-Wl,--no-undefined",
    "-Wl,-z,now",
    "-Wl,-z,noexecstack",
    "-Wl,-z,noseparate-code",
    "-Wl,-z,norelro",
};

void kn_cpu_flags_fixed(kn_strbuf *flags)
{
    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
        kn_strbuf_append(flags, fixed[i], strlen(fixed[i]) + 1);
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

/* Reasons, by prefix; looked through before what is known to be fine. */
static const struct {
    const char *prefix, *why;
} unknown[] = {
    {"-Wl,", "options for the linker may name files"},
    {"-Wa,", "options for the assembler may name files"},
    {"-Wp,", "options for the preprocessor may name files"},
    {"-march=native", "\"native\" means another thing on each machine; name the target"},
    {"-mtune=native", "\"native\" means another thing on each machine; name the target"},
    {"-mcpu=native", "\"native\" means another thing on each machine; name the target"},
    {"-fplugin", "a plugin of the compiler is a file that kiln does not follow"},
    {"-fpass-plugin", "a plugin of the compiler is a file that kiln does not follow"},
    {"-fprofile", "a profile is a file that kiln does not follow"},
    {"-fauto-profile", "a profile is a file that kiln does not follow"},
    {"-fbranch-probabilities", "a profile is a file that kiln does not follow"},
    {"-fsanitize", "a sanitizer has libraries and lists that kiln does not follow"},
    {"-fmodule", "modules are files that kiln does not follow"},
    {"-fprebuilt-module", "modules are files that kiln does not follow"},
    {"-fbasic-block-sections=list", "a list is a file that kiln does not follow"},
    {"-fxray", "lists are files that kiln does not follow"},
    {"-frandomize-layout-seed-file", "a seed's file is one that kiln does not follow"},
    {"-fembed-offload-object", "an embedded object is a file that kiln does not follow"},
    {"-fthinlto-index", "an index is a file that kiln does not follow"},
    {"-fcs-profile", "a profile is a file that kiln does not follow"},
    {"-fmemory-profile", "a profile is a file that kiln does not follow"},
    {"-fuse-ld", "another linker is not the one that kiln identified"},
    {"-fdump", "the compiler is asked to write more files"},
    {"-fcallgraph-info", "the compiler is asked to write more files"},
    {"-fsave-optimization-record", "the compiler is asked to write more files"},
    {"-ftime-trace", "the compiler is asked to write more files"},
    {"-fopt-info-", "the compiler may be asked to write more files"},
    {"-fcrash-diagnostics", "the compiler is asked to write more files"},
    {"-ftest-coverage", "the compiler is asked to write more files"},
    {"-fstack-usage", "the compiler is asked to write more files"},
    {"-fproc-stat-report", "the compiler is asked to write more files"},
    {"-fdiagnostics-format=sarif-file", "the compiler is asked to write more files"},
    {"-fdiagnostics-format=json-file", "the compiler is asked to write more files"},
    {"-gsplit-dwarf", "the compiler is asked to write more files"},
};

/* Prefixes of options that stand for themselves. */
static const char *const known[] = {"-D", "-U",    "-O",        "-g",    "-W",       "-f",
                                    "-m", "-std=", "-pedantic", "-ansi", "-pthread", "-trigraphs"};

const char *kn_cpu_flags_uncacheable(void *instance, const kiln_source *source)
{
    (void)instance;
    for (size_t i = 0; i < source->option_count; i++) {
        const char *option = source->options[i];
        const char *why = "an option is not known to name no file";
        for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++) {
            if (kn_text_starts(option, known[k])) {
                why = NULL;
            }
        }
        for (size_t k = 0; k < sizeof(unknown) / sizeof(unknown[0]); k++) {
            if (kn_text_starts(option, unknown[k].prefix)) {
                why = unknown[k].why;
            }
        }
        if (strcmp(option, "-lm") == 0 || strcmp(option, "-w") == 0) {
            why = NULL;
        }
        /* "-D NAME" in two words: the word after it is no option. */
        if (why == NULL && (strcmp(option, "-D") == 0 || strcmp(option, "-U") == 0) &&
            i + 1 < source->option_count) {
            i++;
        }
        if (why != NULL) {
            return why;
        }
    }
    return NULL;
}
