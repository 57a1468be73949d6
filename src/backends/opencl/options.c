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

void kn_opencl_load_options(const char *options, kn_strbuf *out)
{
    /* NVIDIA's binary is PTX: what steers its assembler acts when the binary is loaded. */
    static const char prefix[] = "-cl-nv-";
    kn_strbuf token;
    bool odd = false;
    bool value = false; /* "-cl-nv-maxrregcount 32": the number is a token of its own */
    kn_strbuf_init(&token, 0);
    while (options != NULL && kn_opencl_option_next(&options, &token, &odd)) {
        const char *text = kn_strbuf_text(&token);
        bool own = kn_text_starts(text, prefix);
        if (own || (value && isdigit((unsigned char)text[0]))) {
            kn_strbuf_printf(out, "%s%s", out->length > 0 ? " " : "", text);
        }
        value = own;
    }
    kn_strbuf_deinit(&token);
}
