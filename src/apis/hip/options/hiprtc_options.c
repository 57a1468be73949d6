/* See hiprtc_options.h and hiprtc_options.def. */
#include "apis/hip/options/hiprtc_options.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

typedef enum option_form { EXACT, JOINED, LETTER, WARNING, BEGINS } option_form;
typedef enum option_use {
    KEYED,
    TARGET,
    NAMES_TARGET,
    DIRECTORY,
    LINES,
    BITCODE,
    REFUSED
} option_use;

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

#define KN_HIPRTC_OPTION(name, form, use, reason) {name, form, use, reason},
static const struct {
    const char *name;
    option_form form;
    option_use use;
    const char *reason;
} rows[] = {
#include "apis/hip/options/hiprtc_options.def"
};
#undef KN_HIPRTC_OPTION

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static bool is_row(size_t row, const char *option)
{
    switch (rows[row].form) {
    case EXACT:
        return strcmp(option, rows[row].name) == 0;
    case WARNING:
        return kn_text_starts(option, rows[row].name) && strchr(option, ',') == NULL;
    default:
        return kn_text_starts(option, rows[row].name);
    }
}

/* The row with the longest name: "-include" is not "-i". */
static size_t find_hiprtc_row(const char *option)
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

/* hipRTC 5.2 splits its options at blanks, and clang takes "-I=dir" for one below its root. */
static bool is_plain_value(size_t row, const char *value)
{
    return value[0] != '\0' && strpbrk(value, " \t\r\n\"'\\") == NULL &&
           (rows[row].use != DIRECTORY || value[0] != '=');
}

void kn_hiprtc_option_read(const char *const *options, size_t count, size_t index,
                           kn_call_option *out)
{
    const char *option = options[index];
    const size_t row = find_hiprtc_row(option);
    *out = (kn_call_option){.use = KN_OPTION_OTHER, .last = index};
    if (row == ROWS) {
        return;
    }
    const char *value = option + strlen(rows[row].name);
    if (rows[row].form == LETTER && value[0] == '\0' && index + 1 < count) {
        value = options[++out->last];
    }
    if ((rows[row].use != TARGET && rows[row].use != DIRECTORY) || !is_plain_value(row, value)) {
        return;
    }
    out->value = value;
    out->before = (size_t)(value - options[out->last]);
    out->use = rows[row].use == TARGET ? KN_OPTION_TARGET : KN_OPTION_DIRECTORY;
}

bool kn_hiprtc_option_asks_bitcode(const char *option)
{
    const size_t row = find_hiprtc_row(option);
    return row < ROWS && rows[row].use == BITCODE;
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

static const char *judge_value(size_t row, const char *const *options, size_t count, size_t *index)
{
    const bool bare = options[*index][strlen(rows[row].name)] == '\0';
    if (rows[row].form == JOINED) {
        return bare ? unknown_option : NULL;
    }
    if (rows[row].form != LETTER || !bare) {
        return NULL;
    }
    if (*index + 1 == count || options[*index + 1][0] == '-' || options[*index + 1][0] == '\0') {
        return unknown_option;
    }
    ++*index;
    return has_blank(options[*index]) ? blanks : NULL;
}

/* Reads the option at *index, which moves on to the last element that belongs to it. */
static const char *judge_hiprtc_option(const char *const *options, size_t count, size_t *index,
                                       kn_hiprtc_option_facts *out)
{
    const char *option = options[*index];
    const size_t row = find_hiprtc_row(option);
    if (row < ROWS && (rows[row].use == TARGET || rows[row].use == NAMES_TARGET)) {
        out->target = true;
        return rows[row].reason;
    }
    if (has_blank(option)) {
        return blanks;
    }
    if (row == ROWS) {
        return unknown_option;
    }
    if (rows[row].reason != NULL) {
        return rows[row].reason;
    }
    out->names = out->names || rows[row].use == LINES;
    return judge_value(row, options, count, index);
}

void kn_hiprtc_options_read(const char *const *options, size_t count, kn_hiprtc_option_facts *out)
{
    *out = (kn_hiprtc_option_facts){NULL, false, false};
    for (size_t i = 0; i < count; i++) {
        /* All are looked at: a target is refused wherever it stands. */
        const char *reason = judge_hiprtc_option(options, count, &i, out);
        out->reason = out->reason != NULL ? out->reason : reason;
    }
}

void kn_hiprtc_options_read_text(const char *text, kn_hiprtc_option_facts *out)
{
    static const char separators[] = " \t\r\n";
    const char *options[64];
    size_t count = 0;
    char *copy = kn_text_copy(text);
    *out = (kn_hiprtc_option_facts){unknown_option, false, false};
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
        kn_hiprtc_options_read(options, count, out);
    }
    free(copy);
}
