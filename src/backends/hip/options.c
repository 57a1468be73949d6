/* hipRTC's options. It hands them to clang, which has two thousand; an option is cacheable when a
 * row says that it reads and writes no file. */
#include "backends/hip/options.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

typedef enum option_kind {
    EXACT,   /* the whole option */
    JOINED,  /* "-std=c++17": what follows is a value, not empty */
    MACRO,   /* "-DNAME", or NAME is the next option */
    WARNING, /* "-Wall", and not "-Wl,..." */
    LINES,   /* as EXACT, and the code then names files */
    TARGET,  /* names a target */
    REFUSED, /* all that begins so bypasses the cache */
} option_kind;

static const char unknown_option[] =
    "an option may read a file; the known options are in docs/reference/backends/hip.md";
static const char include_dir[] =
    "an include directory among the options is not followed; give it as an include directory";
static const char pre_include[] = "a file that an option includes is not followed";
static const char writes[] = "an option writes a file, which a hit would not write";
static const char inner[] = "an option for a part of the compiler may read any file";
static const char bitcode[] = "an option asks for LLVM's bitcode, which is not a code object";
static const char blanks[] = "an option has a blank in it, at which hipRTC may split it";
static const char two_targets[] = "an option names a target, which kiln names itself";

static const struct {
    const char *name;
    option_kind kind;
    const char *reason; /* REFUSED, TARGET */
} rows[] = {
    {"", EXACT, NULL}, /* hipRTC drops it */
    {"-D", MACRO, NULL},
    {"-U", MACRO, NULL},
    {"-O0", EXACT, NULL},
    {"-O1", EXACT, NULL},
    {"-O2", EXACT, NULL},
    {"-O3", EXACT, NULL},
    {"-Os", EXACT, NULL},
    {"-Ofast", EXACT, NULL},
    {"-w", EXACT, NULL},
    {"-pedantic", EXACT, NULL},
    {"-std=", JOINED, NULL},
    {"--std=", JOINED, NULL},
    {"-ffast-math", EXACT, NULL},
    {"-fno-fast-math", EXACT, NULL},
    {"-funsafe-math-optimizations", EXACT, NULL},
    {"-fno-unsafe-math-optimizations", EXACT, NULL},
    {"-fassociative-math", EXACT, NULL},
    {"-fno-associative-math", EXACT, NULL},
    {"-freciprocal-math", EXACT, NULL},
    {"-fno-reciprocal-math", EXACT, NULL},
    {"-ffinite-math-only", EXACT, NULL},
    {"-fno-finite-math-only", EXACT, NULL},
    {"-fhonor-infinities", EXACT, NULL},
    {"-fno-honor-infinities", EXACT, NULL},
    {"-fhonor-nans", EXACT, NULL},
    {"-fno-honor-nans", EXACT, NULL},
    {"-fsigned-zeros", EXACT, NULL},
    {"-fno-signed-zeros", EXACT, NULL},
    {"-fapprox-func", EXACT, NULL},
    {"-fno-approx-func", EXACT, NULL},
    {"-fmath-errno", EXACT, NULL},
    {"-fno-math-errno", EXACT, NULL},
    {"-ftrapping-math", EXACT, NULL},
    {"-fno-trapping-math", EXACT, NULL},
    {"-ffp-contract=", JOINED, NULL},
    {"-fdenormal-fp-math=", JOINED, NULL},
    {"-fgpu-flush-denormals-to-zero", EXACT, NULL},
    {"-fno-gpu-flush-denormals-to-zero", EXACT, NULL},
    {"-fgpu-approx-transcendentals", EXACT, NULL},
    {"-fno-gpu-approx-transcendentals", EXACT, NULL},
    {"-munsafe-fp-atomics", EXACT, NULL},
    {"-mno-unsafe-fp-atomics", EXACT, NULL},
    {"-mcumode", EXACT, NULL},
    {"-mno-cumode", EXACT, NULL},
    {"-mwavefrontsize64", EXACT, NULL},
    {"-mno-wavefrontsize64", EXACT, NULL},
    {"-fstrict-aliasing", EXACT, NULL},
    {"-fno-strict-aliasing", EXACT, NULL},
    {"-fwrapv", EXACT, NULL},
    {"-fno-wrapv", EXACT, NULL},
    {"-funroll-loops", EXACT, NULL},
    {"-fno-unroll-loops", EXACT, NULL},
    {"-fvectorize", EXACT, NULL},
    {"-fno-vectorize", EXACT, NULL},
    {"-fslp-vectorize", EXACT, NULL},
    {"-fno-slp-vectorize", EXACT, NULL},
    {"-fno-exceptions", EXACT, NULL},
    {"-fno-rtti", EXACT, NULL},
    {"-ferror-limit=", JOINED, NULL},
    {"-fcolor-diagnostics", EXACT, NULL},
    {"-fno-color-diagnostics", EXACT, NULL},
    {"-W", WARNING, NULL},
    {"-g", LINES, NULL},
    {"-g0", EXACT, NULL},
    {"-g1", LINES, NULL},
    {"-g2", LINES, NULL},
    {"-g3", LINES, NULL},
    {"-ggdb", LINES, NULL},
    {"-gline-tables-only", LINES, NULL},
    {"--offload-arch", TARGET, two_targets},
    {"--no-offload-arch", TARGET, two_targets},
    {"--gpu-architecture", TARGET, two_targets},
    {"--cuda-gpu-arch", TARGET, two_targets},
    {"--offload=", TARGET, two_targets},
    {"-I", REFUSED, include_dir},
    {"--include-directory", REFUSED, include_dir},
    {"-isystem", REFUSED, include_dir},
    {"-iquote", REFUSED, include_dir},
    {"-idirafter", REFUSED, include_dir},
    {"-include", REFUSED, pre_include},
    {"--include", REFUSED, pre_include},
    {"-imacros", REFUSED, pre_include},
    {"-save-temps", REFUSED, writes},
    {"--save-temps", REFUSED, writes},
    {"-M", REFUSED, writes},
    {"-o", REFUSED, writes},
    {"-ftime-trace", REFUSED, writes},
    {"-fno-gpu-rdc", EXACT, NULL},
    {"-fgpu-rdc", REFUSED, bitcode},
    {"-emit-llvm", REFUSED, bitcode},
    {"-X", REFUSED, inner},
    {"-mllvm", REFUSED, inner},
    {"-Wl,", REFUSED, inner},
    {"-Wa,", REFUSED, inner},
    {"-Wp,", REFUSED, inner},
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static bool is_row(size_t row, const char *option)
{
    switch (rows[row].kind) {
    case EXACT:
    case LINES:
        return strcmp(option, rows[row].name) == 0;
    case WARNING:
        return kn_text_starts(option, rows[row].name) && strchr(option, ',') == NULL;
    default:
        return kn_text_starts(option, rows[row].name);
    }
}

/* The row with the longest name: "-include" is not "-i". */
static size_t find_row(const char *option)
{
    size_t found = ROWS;
    for (size_t i = 0; i < ROWS; i++) {
        if (is_row(i, option) &&
            (found == ROWS || strlen(rows[i].name) > strlen(rows[found].name))) {
            found = i;
        }
    }
    return found;
}

static bool has_blank(const char *option)
{
    for (; *option != '\0'; option++) {
        if (isspace((unsigned char)*option)) {
            return true;
        }
    }
    return false;
}

/* Reads the option at *index, which moves on to the last element that belongs to it. */
static const char *read_option(const char *const *options, size_t count, size_t *index,
                               kn_hip_option_facts *out)
{
    const char *option = options[*index];
    const size_t row = find_row(option);
    if (row < ROWS && rows[row].kind == TARGET) {
        out->target = true;
        return rows[row].reason;
    }
    if (has_blank(option)) {
        return blanks;
    }
    if (row == ROWS) {
        return unknown_option;
    }
    switch (rows[row].kind) {
    case REFUSED:
        return rows[row].reason;
    case JOINED:
        return option[strlen(rows[row].name)] != '\0' ? NULL : unknown_option;
    case LINES:
        out->names = true;
        return NULL;
    case MACRO:
        break;
    default:
        return NULL;
    }
    if (option[strlen(rows[row].name)] != '\0') {
        return NULL;
    }
    if (*index + 1 == count || options[*index + 1][0] == '-' || options[*index + 1][0] == '\0') {
        return unknown_option;
    }
    ++*index;
    return has_blank(options[*index]) ? blanks : NULL;
}

void kn_hip_options_read(const char *const *options, size_t count, kn_hip_option_facts *out)
{
    *out = (kn_hip_option_facts){NULL, false, false};
    for (size_t i = 0; i < count; i++) {
        /* All are looked at: a target is refused wherever it stands. */
        const char *reason = read_option(options, count, &i, out);
        out->reason = out->reason != NULL ? out->reason : reason;
    }
}

void kn_hip_options_read_text(const char *text, kn_hip_option_facts *out)
{
    static const char separators[] = " \t\r\n";
    const char *options[64];
    size_t count = 0;
    char *copy = kn_text_copy(text);
    *out = (kn_hip_option_facts){unknown_option, false, false};
    if (copy == NULL) {
        return;
    }
    char *at = copy + strspn(copy, separators);
    while (*at != '\0' && count < sizeof(options) / sizeof(options[0])) {
        options[count++] = at;
        at += strcspn(at, separators);
        if (*at != '\0') {
            *at++ = '\0';
        }
        at += strspn(at, separators);
    }
    if (*at == '\0' && strpbrk(text, "\"'\\") == NULL) {
        kn_hip_options_read(options, count, out);
    }
    free(copy);
}
