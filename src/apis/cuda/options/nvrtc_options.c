/* See nvrtc_options.h and nvrtc_options.def. */
#include "apis/cuda/options/nvrtc_options.h"

#include <string.h>

#include "apis/cuda/options/ptxas_options.h"
#include "base/text.h"

typedef enum option_form { FLAG, JOINED, VALUE, LETTER, LIST, ANY } option_form;
typedef enum option_use {
    KEYED,
    TARGET,
    DIRECTORY,
    LINES,
    CARRIES_NAME,
    NOT_BESIDE,
    REFUSED
} option_use;

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

#define KN_NVRTC_OPTION(name, form, use, reason) {name, form, use, reason},
static const struct {
    const char *name; /* without its dashes */
    option_form form;
    option_use use;
    const char *reason; /* REFUSED, DIRECTORY */
} rows[] = {
#include "apis/cuda/options/nvrtc_options.def"
};
#undef KN_NVRTC_OPTION

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static bool is_name(const char *name, const char *text, size_t length)
{
    return strlen(name) == length && memcmp(name, text, length) == 0;
}

static size_t count_dashes(const char *text)
{
    const size_t dashes = strspn(text, "-");
    return dashes <= 2 ? dashes : 0;
}

/* The row of an option; *out_value is what follows the name in it, or NULL. */
static size_t find_nvrtc_row(const char *option, const char **out_value)
{
    const size_t dashes = count_dashes(option);
    const char *name = option + dashes;
    const size_t length = strcspn(name, "=");
    size_t found = ROWS;
    *out_value = name[length] == '=' ? name + length + 1 : NULL;
    for (size_t i = 0; i < ROWS && dashes > 0 && found == ROWS; i++) {
        if (is_name(rows[i].name, name, length)) {
            found = i;
        }
    }
    for (size_t i = 0; i < ROWS && dashes == 1 && found == ROWS; i++) {
        if (rows[i].form == LETTER && name[0] == rows[i].name[0] && length > 1) {
            *out_value = name + 1;
            found = i;
        }
    }
    return found;
}

/* Whether the next option is its value. */
static bool takes_next(size_t row, const char *value)
{
    const option_form form = row < ROWS ? rows[row].form : FLAG;
    return value == NULL && (form == VALUE || form == LETTER || form == LIST);
}

/* "-I" and "-arch" have one dash, their long names two. */
static bool is_spelt_for(const char *option, size_t row)
{
    const bool full = rows[row].name[1] != '\0' && strcmp(rows[row].name, "arch") != 0;
    return count_dashes(option) == (full ? 2u : 1u);
}

void kn_nvrtc_option_read(const char *const *options, size_t count, size_t index,
                          kn_call_option *out)
{
    const char *value = NULL;
    const size_t row = find_nvrtc_row(options[index], &value);
    *out = (kn_call_option){.use = KN_OPTION_OTHER, .last = index};
    if (takes_next(row, value)) {
        out->last += index + 1 < count;
        value = out->last > index ? options[out->last] : NULL;
    }
    if (row == ROWS || value == NULL || value[0] == '\0' || kn_text_has_outer_blanks(value) ||
        !is_spelt_for(options[index], row)) {
        return;
    }
    out->value = value;
    out->before = (size_t)(value - options[out->last]);
    out->use = rows[row].use == TARGET      ? KN_OPTION_TARGET
               : rows[row].use == DIRECTORY ? KN_OPTION_DIRECTORY
                                            : KN_OPTION_OTHER;
}

static void add_effects(size_t row, kn_nvrtc_option_facts *out)
{
    out->not_beside = out->not_beside || rows[row].use == NOT_BESIDE;
    out->names = out->names || rows[row].use == LINES;
    out->carries_name = out->carries_name || rows[row].use == CARRIES_NAME;
}

/* Reads the option at *index, which moves on to the last element that belongs to it. */
static const char *judge_nvrtc_option(const char *const *options, size_t count, size_t *index,
                                      kn_nvrtc_option_facts *out)
{
    const char *value = NULL;
    const size_t row = find_nvrtc_row(options[*index], &value);
    if (kn_text_has_outer_blanks(options[*index])) {
        return blanks; /* NVRTC takes them off */
    }
    if (row == ROWS) {
        return kn_text_starts(options[*index], "-I") ? include_dir : unknown_option;
    }
    add_effects(row, out);
    if (rows[row].reason != NULL) {
        return rows[row].reason;
    }
    if (rows[row].form == JOINED) {
        return value != NULL ? NULL : unknown_option;
    }
    if (takes_next(row, value) && *index + 1 < count) {
        value = options[++*index];
        if (rows[row].form != LIST && value[0] == '-') {
            return odd_value;
        }
    }
    return rows[row].form == LIST && value != NULL ? kn_ptxas_list_reason(value) : NULL;
}

void kn_nvrtc_options_read(const char *const *options, size_t count, kn_nvrtc_option_facts *out)
{
    *out = (kn_nvrtc_option_facts){NULL, false, false, false};
    for (size_t i = 0; i < count && out->reason == NULL; i++) {
        out->reason = judge_nvrtc_option(options, count, &i, out);
    }
}

const char *kn_nvrtc_options_uncached(int major, int minor)
{
    return major * 100 + minor >= 1209 ? "--no-cache" : NULL;
}
