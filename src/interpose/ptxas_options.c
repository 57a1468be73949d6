/* See ptxas_options.h. The spellings are those of `ptxas --help`, 12.0 to 13.0, and the forms those
 * that NVIDIA's tools take: "-x value", "-x=value", and "-O3". What is not listed is bypassed:
 *   --device-debug writes the names of input and directory into the output; --options-file and
 *   --input-as-string read from elsewhere; --split-compile depends on the machine's processors. */
#include "interpose/ptxas_options.h"

#include <string.h>

#include "base/text.h"

static const char *const flags[] = {
    "--verbose",
    "-v",
    "--generate-line-info",
    "-lineinfo",
    "--suppress-debug-info",
    "-suppress-debug-info",
    "--compile-only",
    "-c",
    "--disable-warnings",
    "-w",
    "--warning-as-error",
    "-Werror",
    "--warn-on-spills",
    "-warn-spills",
    "--warn-on-local-memory-usage",
    "-warn-lmem-usage",
    "--warn-on-double-precision-use",
    "-warn-double-usage",
    "--suppress-stack-size-warning",
    "-suppress-stack-size-warning",
    "--suppress-double-demote-warning",
    "-suppress-double-demote-warning",
    "--suppress-async-bulk-multicast-advisory-warning",
    "-suppress-async-bulk-multicast-advisory-warning",
    "--suppress-sparse-mma-advisory-info",
    "-suppress-sparse-mma-advisory-info",
    "--extensible-whole-program",
    "-ewp",
    "--preserve-relocs",
    "-preserve-relocs",
    "--return-at-end",
    "-ret-end",
    "--sp-bounds-check",
    "-sp-bounds-check",
    "--disable-optimizer-constants",
    "-disable-optimizer-consts",
    "--dont-merge-basicblocks",
    "-no-bb-merge",
    "--optimize-float-atomics",
    "-opt-fp-atomics",
    "--make-errors-visible-at-exit",
    "-make-errors-visible-at-exit",
    "--override-directive-values",
    "-override-directive-values",
    "-O0",
    "-O1",
    "-O2",
    "-O3",
    "-O4",
    "-m64",
};

static const char *const values[] = {
    "--opt-level",
    "--maxrregcount",
    "-maxrregcount",
    "--device-function-maxrregcount",
    "-func-maxrregcount",
    "--def-load-cache",
    "-dlcm",
    "--def-store-cache",
    "-dscm",
    "--force-load-cache",
    "-flcm",
    "--force-store-cache",
    "-fscm",
    "--fmad",
    "-fmad",
    "--allow-expensive-optimizations",
    "-allow-expensive-optimizations",
    "--register-usage-level",
    "-regUsageLevel",
    "--Ofast-compile",
    "-Ofc",
    "--entry",
    "-e",
    "--machine",
    "-m",
    "--position-independent-code",
    "-pic",
    "--device-stack-protector",
    "-device-stack-protector",
    "--minnctapersm",
    "-minnctapersm",
    "--maxntid",
    "-maxntid",
};

static const char *const arch_names[] = {"--gpu-name", "-arch"};
static const char *const output_names[] = {"--output-file", "-o"};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static bool is_listed(const char *option, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(option, list[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* The value of an option of the list at argv[*at], which moves to the last argument used; NULL if
 * it is another option. *out_joined: "-x=value". */
static const char *value_of_option(int argc, char *const *argv, int *at, const char *const *list,
                                   size_t count)
{
    const char *option = argv[*at];
    for (size_t i = 0; i < count && option != NULL; i++) {
        const size_t length = strlen(list[i]);
        if (strncmp(option, list[i], length) != 0) {
            continue;
        }
        if (option[length] == '=') {
            return option + length + 1;
        }
        if (option[length] == '\0' && *at + 1 < argc) {
            *at += 1;
            return argv[*at];
        }
    }
    return NULL;
}

static bool take_arch(kn_ptxas_line *line, const char *value)
{
    /* A virtual architecture only has the input checked. */
    if (!kn_text_starts(value, "sm_") || strlen(value) > 16 ||
        strspn(value + 3, "0123456789abcdefghijklmnopqrstuvwxyz") != strlen(value + 3)) {
        return false;
    }
    kn_text_putf(line->target, sizeof(line->target), "cuda-%s", value);
    return true;
}

static bool take_output(kn_ptxas_line *line, int at, const char *argument, const char *value)
{
    if (line->output_at != 0 || value[0] == '\0') {
        return false;
    }
    line->output_at = at;
    line->output_skip = (size_t)(value - argument);
    line->output = value;
    return true;
}

/* One option or the input; *at moves to the last argument used. False: not followed. */
static bool take_argument(int argc, char *const *argv, int *at, kn_ptxas_line *line)
{
    const char *option = argv[*at];
    if (option[0] != '-') {
        if (line->input_at != 0 || option[0] == '\0' || option[0] == '@') {
            return false;
        }
        line->input_at = *at;
        return true;
    }
    if (is_listed(option, flags, COUNT_OF(flags))) {
        return true;
    }
    const char *value = value_of_option(argc, argv, at, arch_names, COUNT_OF(arch_names));
    if (value != NULL) {
        return take_arch(line, value);
    }
    value = value_of_option(argc, argv, at, output_names, COUNT_OF(output_names));
    if (value != NULL) {
        return take_output(line, *at, argv[*at], value);
    }
    value = value_of_option(argc, argv, at, values, COUNT_OF(values));
    return value != NULL && value[0] != '\0' && value[0] != '-';
}

static bool has_flag(int argc, char *const *argv, const char *name, const char *other)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], name) == 0 || strcmp(argv[i], other) == 0) {
            return true;
        }
    }
    return false;
}

void kn_ptxas_line_read(int argc, char *const *argv, kn_ptxas_line *out_line)
{
    memset(out_line, 0, sizeof(*out_line));
    out_line->output = "elf.o";
    kn_text_put(out_line->target, sizeof(out_line->target), "cuda-default");
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        out_line->asks_version = true;
        return;
    }
    for (int i = 1; i < argc; i++) {
        const char *first = argv[i];
        if (!take_argument(argc, argv, &i, out_line)) {
            kn_text_putf(out_line->bypass, sizeof(out_line->bypass),
                         "ptxas: an argument that kiln does not follow: %.60s", first);
            return;
        }
    }
    if (out_line->input_at == 0) {
        kn_text_put(out_line->bypass, sizeof(out_line->bypass), "ptxas: no input file is named");
    }
    out_line->no_lines = has_flag(argc, argv, "--suppress-debug-info", "-suppress-debug-info") &&
                         has_flag(argc, argv, "--generate-line-info", "-lineinfo");
}
