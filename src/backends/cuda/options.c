/* NVRTC's options, all that NVRTC 11 to 13 take (NVRTC user guide, "Supported Compile Options", and
 * what the library itself accepts). An option is cacheable when a row says what it does: those that
 * read or write files have the reason in their row, and those without a row are not known to leave
 * files alone. NVRTC takes "-name" for some options and "--name" for others; a row stands for both,
 * since a compile that NVRTC refuses stores nothing. */
#include "backends/cuda/options.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

typedef enum option_kind {
    FLAG,    /* takes no value */
    JOINED,  /* "=VALUE" only */
    VALUE,   /* "=VALUE", or the next option */
    MACRO,   /* the same, and the value may follow the letter: -DNAME */
    PTXAS,   /* VALUE: a list of options for the assembler */
    REFUSED, /* bypasses the cache, whatever its value is */
} option_kind;

enum { NOT_BESIDE = 1, NAMES = 2 };

static const char unknown_option[] =
    "an option may read a file; the known options are in docs/reference/backends/cuda.md";
static const char include_dir[] =
    "an include directory among the options is not followed; give it as an include directory";
static const char pre_include[] = "a file that an option includes is not followed";
static const char precompiled[] = "an option reads or writes a precompiled header of its own";
static const char writes[] = "an option writes a file, which a hit would not write";
static const char history[] = "an option's output depends on earlier compiles of the process";
static const char inner[] = "an option for a part of the compiler may read any file";
static const char odd_value[] = "an option has another option for its value";
static const char blanks[] = "an option begins or ends with a space";

static const struct {
    const char *name; /* without its dashes */
    option_kind kind;
    int effects;
    const char *reason; /* REFUSED */
} rows[] = {
    {"D", MACRO, 0, NULL},
    {"define-macro", VALUE, 0, NULL},
    {"U", MACRO, 0, NULL},
    {"undefine-macro", VALUE, 0, NULL},
    {"gpu-architecture", VALUE, 0, NULL},
    {"arch", VALUE, 0, NULL},
    {"std", JOINED, 0, NULL},
    {"cuda-api-version", JOINED, 0, NULL},
    {"nvvm-version", JOINED, 0, NULL},
    {"frandom-seed", JOINED, 0, NULL},
    {"optimization-info", JOINED, 0, NULL},
    {"opt-info", JOINED, 0, NULL},
    {"maxrregcount", VALUE, 0, NULL},
    {"split-compile", VALUE, 0, NULL},
    {"jump-table-density", VALUE, 0, NULL},
    {"jtd", VALUE, 0, NULL},
    {"Ofast-compile", VALUE, 0, NULL},
    {"Ofc", VALUE, 0, NULL},
    {"dopt", VALUE, 0, NULL},
    {"diag-error", VALUE, 0, NULL},
    {"diag-warn", VALUE, 0, NULL},
    {"diag-suppress", VALUE, 0, NULL},
    {"Xptxas", PTXAS, 0, NULL},
    {"ptxas-options", PTXAS, 0, NULL},
    {"ftz", VALUE, 0, NULL},
    {"prec-sqrt", VALUE, 0, NULL},
    {"prec-div", VALUE, 0, NULL},
    {"fmad", VALUE, 0, NULL},
    {"rdc", VALUE, 0, NULL},
    {"relocatable-device-code", VALUE, 0, NULL},
    {"device-stack-protector", VALUE, 0, NULL},
    {"discard-value-names", VALUE, 0, NULL},
    {"dQ", VALUE, 0, NULL},
    {"brief-diagnostics", VALUE, 0, NULL},
    {"brief-diag", VALUE, 0, NULL},
    {"modify-stack-limit", VALUE, 0, NULL},
    {"builtin-move-forward", VALUE, 0, NULL},
    {"builtin-initializer-list", VALUE, 0, NULL},
    {"use_fast_math", FLAG, 0, NULL},
    {"fassociative-math", FLAG, 0, NULL},
    {"extra-device-vectorization", FLAG, 0, NULL},
    {"restrict", FLAG, 0, NULL},
    {"minimal", FLAG, 0, NULL},
    {"uumn", FLAG, 0, NULL},
    {"device-int128", FLAG, 0, NULL},
    {"device-float128", FLAG, 0, NULL},
    {"device-as-default-execution-space", FLAG, 0, NULL},
    {"default-device", FLAG, 0, NULL},
    {"generate-builtins", FLAG, 0, NULL},
    {"genbuiltins", FLAG, 0, NULL},
    {"fdevice-syntax-only", FLAG, 0, NULL},
    {"device-c", FLAG, 0, NULL},
    {"dc", FLAG, 0, NULL},
    {"device-w", FLAG, 0, NULL},
    {"dw", FLAG, 0, NULL},
    {"extensible-whole-program", FLAG, 0, NULL},
    {"ewp", FLAG, 0, NULL},
    {"dlink-time-opt", FLAG, 0, NULL},
    {"dlto", FLAG, 0, NULL},
    {"gen-opt-lto", FLAG, 0, NULL},
    {"optix-ir", FLAG, 0, NULL},
    {"disable-warnings", FLAG, 0, NULL},
    {"w", FLAG, 0, NULL},
    {"display-error-number", FLAG, 0, NULL},
    {"err-no", FLAG, 0, NULL},
    {"no-display-error-number", FLAG, 0, NULL},
    {"no-err-no", FLAG, 0, NULL},
    {"no-cache", FLAG, 0, NULL}, /* NVRTC's own */
    {"no-lineinfo-inlined-at", FLAG, 0, NULL},
    {"no-lineinfo-ia", FLAG, 0, NULL},
    {"device-debug", FLAG, NAMES, NULL},
    {"G", FLAG, NAMES, NULL},
    {"generate-line-info", FLAG, NAMES, NULL},
    {"lineinfo", FLAG, NAMES, NULL},
    {"no-source-include", FLAG, NOT_BESIDE, NULL},
    {"I", REFUSED, 0, include_dir},
    {"include-path", REFUSED, 0, include_dir},
    {"isystem", REFUSED, 0, include_dir},
    {"system-include", REFUSED, 0, include_dir},
    {"include", REFUSED, 0, pre_include},
    {"pre-include", REFUSED, 0, pre_include},
    {"preinclude", REFUSED, 0, pre_include},
    {"pch", REFUSED, 0, precompiled},
    {"pch-dir", REFUSED, 0, precompiled},
    {"pch-messages", REFUSED, 0, precompiled},
    {"pch-verbose", REFUSED, 0, precompiled},
    {"create-pch", REFUSED, 0, precompiled},
    {"use-pch", REFUSED, 0, precompiled},
    {"instantiate-templates-in-pch", REFUSED, 0, precompiled},
    {"version-ident", REFUSED, 0, history},
    {"time", REFUSED, 0, writes},
    {"fdevice-time-trace", REFUSED, 0, writes},
    {"Xcudafe", REFUSED, 0, inner},
    {"Xnvvm", REFUSED, 0, inner},
    {"Xopt", REFUSED, 0, inner},
};

/* The assembler's options, without their dashes; what follows "=" is a value. */
static const char *const ptxas_names[] = {
    "v",
    "verbose",
    "O",
    "O0",
    "O1",
    "O2",
    "O3",
    "O4",
    "opt-level",
    "dlcm",
    "def-load-cache",
    "dscm",
    "def-store-cache",
    "flcm",
    "force-load-cache",
    "fscm",
    "force-store-cache",
    "allow-expensive-optimizations",
    "disable-optimizer-consts",
    "disable-optimizer-constants",
    "fmad",
    "maxrregcount",
    "maxntid",
    "minnctapersm",
    "override-directive-values",
    "preserve-relocs",
    "sp-bounds-check",
    "suppress-double-demote-warning",
    "suppress-stack-size-warning",
    "suppress-async-bulk-multicast-advisory-warning",
    "warn-double-usage",
    "warn-on-double-precision-use",
    "warn-lmem-usage",
    "warn-on-local-memory-usage",
    "warn-spills",
    "warn-on-spills",
    "disable-warnings",
    "w",
    "Werror",
    "return-at-end",
    "pic",
    "position-independent-code",
    "no-fastreg",
    "split-compile",
    "Ofc",
    "Ofast-compile",
};

static bool is_name(const char *name, const char *text, size_t length)
{
    return strlen(name) == length && memcmp(name, text, length) == 0;
}

static bool is_ptxas_name(const char *text, size_t length)
{
    for (size_t i = 0; i < sizeof(ptxas_names) / sizeof(ptxas_names[0]); i++) {
        if (is_name(ptxas_names[i], text, length)) {
            return true;
        }
    }
    return false;
}

static size_t count_dashes(const char *text)
{
    const size_t dashes = strspn(text, "-");
    return dashes <= 2 ? dashes : 0;
}

/* NULL if each part of "-O1,--def-load-cache=ca" is known. */
static const char *find_ptxas_reason(const char *list)
{
    while (*list != '\0') {
        const size_t length = strcspn(list, ",");
        const size_t dashes = count_dashes(list);
        size_t name = 0;
        while (dashes + name < length && list[dashes + name] != '=') {
            name++;
        }
        if (dashes == 0 || !is_ptxas_name(list + dashes, name)) {
            return "an option for the assembler may read a file that kiln does not follow";
        }
        list += length + (list[length] == ',');
    }
    return NULL;
}

/* The row of an option; *out_value is what follows the name in it, or NULL. */
static size_t find_row(const char *option, const char **out_value)
{
    const size_t count = sizeof(rows) / sizeof(rows[0]);
    const size_t dashes = count_dashes(option);
    const char *name = option + dashes;
    const size_t length = strcspn(name, "=");
    size_t found = count;
    *out_value = name[length] == '=' ? name + length + 1 : NULL;
    for (size_t i = 0; i < count && dashes > 0 && found == count; i++) {
        if (is_name(rows[i].name, name, length)) {
            found = i;
        }
    }
    for (size_t i = 0; i < count && dashes == 1 && found == count; i++) {
        if (rows[i].kind == MACRO && name[0] == rows[i].name[0] && length > 1) {
            *out_value = name + 1;
            found = i;
        }
    }
    return found;
}

/* Reads the option at *index, which moves on to the last element that belongs to it. */
static const char *read_option(const char *const *options, size_t count, size_t *index,
                               int *out_effects)
{
    const char *value = NULL;
    const size_t row = find_row(options[*index], &value);
    if (kn_text_has_outer_blanks(options[*index])) {
        return blanks; /* NVRTC takes them off */
    }
    if (row == sizeof(rows) / sizeof(rows[0])) {
        return kn_text_starts(options[*index], "-I") ? include_dir : unknown_option;
    }
    *out_effects |= rows[row].effects;
    switch (rows[row].kind) {
    case REFUSED:
        return rows[row].reason;
    case FLAG:
        return NULL; /* NVRTC refuses a value */
    case JOINED:
        return value != NULL ? NULL : unknown_option;
    default:
        break;
    }
    if (value == NULL && *index + 1 < count) {
        value = options[++*index];
        if (rows[row].kind != PTXAS && value[0] == '-') {
            return odd_value;
        }
    }
    return rows[row].kind == PTXAS && value != NULL ? find_ptxas_reason(value) : NULL;
}

void kn_cuda_options_read(const char *const *options, size_t count, kn_cuda_option_facts *out)
{
    int effects = 0;
    *out = (kn_cuda_option_facts){NULL, false, false};
    for (size_t i = 0; i < count && out->reason == NULL; i++) {
        out->reason = read_option(options, count, &i, &effects);
    }
    out->not_beside = (effects & NOT_BESIDE) != 0;
    out->names = (effects & NAMES) != 0;
}

void kn_cuda_options_read_text(const char *text, kn_cuda_option_facts *out)
{
    const char *options[64];
    size_t count = 0;
    char *copy = kn_text_copy(text);
    *out = (kn_cuda_option_facts){unknown_option, false, false};
    if (copy == NULL) {
        return;
    }
    char *at = copy;
    while (*at != '\0' && count < sizeof(options) / sizeof(options[0])) {
        at += strspn(at, " \t\r\n");
        if (*at != '\0') {
            options[count++] = at;
            at += strcspn(at, " \t\r\n");
            if (*at != '\0') {
                *at++ = '\0';
            }
        }
    }
    if (*at == '\0' && strpbrk(text, "\"'\\") == NULL) {
        kn_cuda_options_read(options, count, out);
    }
    free(copy);
}

const char *kn_cuda_options_uncached(int major, int minor)
{
    return major * 100 + minor >= 1209 ? "--no-cache" : NULL;
}
