/* See ptxas_options.h and ptxas_options.def. */
#include "apis/cuda/options/ptxas_options.h"

#include <string.h>

#include "base/text.h"

typedef enum option_form { FLAG, VALUE, TARGET, OUTPUT } option_form;
enum { LINE = 1, INNER = 2, BOTH = LINE | INNER };

#define KN_PTXAS_OPTION(brief, full, form, where) {brief, full, form, where},
static const struct {
    const char *brief, *full; /* without dashes; NULL: there is none */
    option_form form;
    int where;
} rows[] = {
#include "apis/cuda/options/ptxas_options.def"
};
#undef KN_PTXAS_OPTION

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static bool is_word(const char *word, const char *text, size_t length)
{
    return word != NULL && strlen(word) == length && memcmp(word, text, length) == 0;
}

/* The row of an option of `length` bytes, with its dashes and without its value. A list that is
 * handed on may have either name with one dash or two. */
static size_t find_ptxas_row(const char *option, size_t length, int where)
{
    const size_t dashes = strspn(option, "-");
    if (dashes == 0 || dashes > 2 || dashes >= length) {
        return ROWS;
    }
    for (size_t i = 0; i < ROWS; i++) {
        const bool brief = is_word(rows[i].brief, option + dashes, length - dashes);
        const bool full = is_word(rows[i].full, option + dashes, length - dashes);
        if ((rows[i].where & where) != 0 &&
            (where == INNER ? brief || full : (dashes == 1 && brief) || (dashes == 2 && full))) {
            return i;
        }
    }
    return ROWS;
}

const char *kn_ptxas_list_reason(const char *list)
{
    while (*list != '\0') {
        const size_t length = strcspn(list, ",");
        size_t name = 0;
        while (name < length && list[name] != '=') {
            name++;
        }
        if (find_ptxas_row(list, name, INNER) == ROWS) {
            return "an option for the assembler may read a file that kiln does not follow";
        }
        list += length + (list[length] == ',');
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
    const size_t name = strcspn(option, "=");
    const size_t row = find_ptxas_row(option, name, LINE);
    if (row == ROWS || rows[row].form == FLAG) {
        return row < ROWS && option[name] == '\0';
    }
    const char *value = option[name] == '=' ? option + name + 1
                        : *at + 1 < argc    ? argv[++*at]
                                            : NULL;
    if (value == NULL) {
        return false;
    }
    switch (rows[row].form) {
    case TARGET:
        return take_arch(line, value);
    case OUTPUT:
        return take_output(line, *at, argv[*at], value);
    default:
        return value[0] != '\0' && value[0] != '-';
    }
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
