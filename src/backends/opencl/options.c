/* Reading option strings. Pure text work: knows no driver call. */
#include "backends/opencl/options.h"

#include <ctype.h>
#include <string.h>

#include "base/text.h"

bool kn_opencl_option_next(const char **cursor, kn_strbuf *token, bool *out_odd)
{
    const char *at = *cursor;
    bool quoted = false;
    kn_strbuf_clear(token);
    while (isspace((unsigned char)*at)) {
        at++;
    }
    const char *start = at;
    for (; *at != '\0' && (quoted || !isspace((unsigned char)*at)); at++) {
        *out_odd = *out_odd || *at == '\'' || *at == '\\';
        if (*at == '"') {
            quoted = !quoted;
        } else {
            kn_strbuf_append_char(token, *at);
        }
    }
    *out_odd = *out_odd || quoted;
    *cursor = at;
    return at != start;
}

const char *kn_opencl_option_reason(const char *token)
{
    static const struct {
        const char *prefix, *reason;
    } rows[] = {
        {"-I", "an include folder among the options is not followed: give it as an include folder"},
        {"-i", "the option reads a file that is not followed (-include, -isystem, ...)"},
        {"-Xclang", "an option for the compiler's inside may read any file"},
        {"-fplugin", "the option loads a plugin"},
        {"-fmodule", "the option reads module files"},
        {"-fprofile", "the option reads a profile"},
        {"--", "an unknown long option may read a file"},
        {"@", "the option reads a file of options"},
    };
    if (strcmp(token, "-s") == 0) {
        return "the option names a source file for the debugger";
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (kn_text_starts(token, rows[i].prefix)) {
            return rows[i].reason;
        }
    }
    return NULL;
}

bool kn_opencl_text_is_plain(const char *text)
{
    static const char marks[] = "_./+-=:,@~()*<>[]{}^%!?&|";
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if (c >= 0x80 || (!isalnum(c) && strchr(marks, c) == NULL)) {
            return false;
        }
    }
    return true;
}

/* What a front end alone reads; *out_value is set where the next token belongs to it. */
static bool is_of_front_end(const char *token, bool *out_value)
{
    static const char *const words[] = {"-w", "-Werror", "-cl-kernel-arg-info", "-x"};
    *out_value = strcmp(token, "-D") == 0 || strcmp(token, "-I") == 0 || strcmp(token, "-x") == 0;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(token, words[i]) == 0) {
            return true;
        }
    }
    return kn_text_starts(token, "-D") || kn_text_starts(token, "-I") ||
           kn_text_starts(token, "-W") || kn_text_starts(token, "-cl-std=");
}

void kn_opencl_options_of_code(const char *options, kn_strbuf *out)
{
    kn_strbuf token;
    bool odd = false;
    bool value = false; /* of the token before */
    kn_strbuf_init(&token, 0);
    const char *raw = options;
    while (kn_opencl_option_next(&options, &token, &odd)) {
        raw += strspn(raw, " \t\r\n\v\f");
        if (value) {
            value = false;
        } else if (!is_of_front_end(kn_strbuf_text(&token), &value)) {
            /* As it was written: a driver takes the quotes off by itself. */
            kn_strbuf_printf(out, "%s%.*s", out->length > 0 ? " " : "", (int)(options - raw), raw);
        }
        raw = options;
    }
    kn_strbuf_deinit(&token);
}
