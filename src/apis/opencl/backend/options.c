/* Reading option strings. Pure text work: knows no driver call. */
#include "apis/opencl/backend/options.h"

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

void kn_opencl_option_reader_init(kn_opencl_option_reader *reader, const char *options)
{
    *reader = (kn_opencl_option_reader){.at = options};
    kn_strbuf_init(&reader->before, 0);
    kn_strbuf_init(&reader->token, 0);
}

bool kn_opencl_option_reader_ok(const kn_opencl_option_reader *reader)
{
    return kn_strbuf_ok(&reader->before) && kn_strbuf_ok(&reader->token);
}

void kn_opencl_option_reader_deinit(kn_opencl_option_reader *reader)
{
    kn_strbuf_deinit(&reader->before);
    kn_strbuf_deinit(&reader->token);
}

static kn_span skip_first(kn_span text, size_t count)
{
    return kn_span_of(text.data + count, text.length - count);
}

/* The next token as it stands in the string; its length is 0 at the end. */
static kn_span take_raw(kn_opencl_option_reader *reader)
{
    const char *from = reader->at + strspn(reader->at, " \t\r\n\v\f");
    (void)kn_opencl_option_next(&reader->at, &reader->token, &reader->odd);
    return kn_span_of(from, (size_t)(reader->at - from));
}

bool kn_opencl_option_read(kn_opencl_option_reader *reader, kn_opencl_option *out)
{
    static const char include[] = "-I";
    const size_t length = strlen(include);
    kn_strbuf_clear(&reader->before);
    kn_strbuf_append_text(&reader->before, kn_strbuf_text(&reader->token));
    const kn_span raw = take_raw(reader);
    *out = (kn_opencl_option){.whole = raw, .raw = raw};
    if (kn_text_starts(kn_strbuf_text(&reader->token), include)) {
        out->quoted_before = memchr(raw.data, '"', length) != NULL;
        if (kn_strbuf_text(&reader->token)[length] != '\0') {
            out->dir = kn_strbuf_text(&reader->token) + length;
            out->raw_dir = skip_first(raw, length);
        } else {
            out->raw = out->raw_dir = take_raw(reader);
            out->dir = out->raw.length > 0 ? kn_strbuf_text(&reader->token) : NULL;
            out->whole = kn_span_of(raw.data, (size_t)(reader->at - raw.data));
            reader->odd = reader->odd || out->dir == NULL;
        }
    }
    out->before = kn_strbuf_text(&reader->before);
    out->token = kn_strbuf_text(&reader->token);
    return raw.length > 0 && kn_opencl_option_reader_ok(reader);
}

/* What OpenCL's own specification, cl_khr_il_program's and NVIDIA's, Intel's, AMD's and PoCL's
 * documentation name: whole tokens, each with a blank before and after it. */
static const char whole[] =
    " -cl-single-precision-constant -cl-denorms-are-zero -cl-fp32-correctly-rounded-divide-sqrt"
    " -cl-opt-disable -cl-mad-enable -cl-no-signed-zeros -cl-unsafe-math-optimizations"
    " -cl-finite-math-only -cl-fast-relaxed-math -cl-uniform-work-group-size"
    " -cl-no-subgroup-ifp -cl-kernel-arg-info -cl-strict-aliasing -cl-nv-verbose -cl-nv-cstd"
    " -cl-nv-maxrregcount -cl-nv-opt-level -cl-nv-arch -cl-intel-gtpin-rera"
    " -cl-intel-greater-than-4GB-buffer-required -cl-intel-256-GRF-per-thread"
    " -cl-intel-128-GRF-per-thread -cl-intel-no-prera-scheduling "
    "-cl-intel-enable-auto-large-GRF-mode"
    " -cl-intel-use-bindless-mode -cl-intel-has-buffer-offset-arg"
    " -D -U -w -W -Wall -Wextra -Werror -g -g0 -g1 -g2 -g3 -O -O0 -O1 -O2 -O3 -O4 -O5 -Os"
    " -fno-math-errno -ffast-math -ffinite-math-only -fno-signed-zeros -ffp-contract=off"
    " -ffp-contract=on -ffp-contract=fast -fno-unroll-loops -funroll-loops -ftz"
    " -fno-strict-aliasing -fstrict-aliasing -fno-common -fno-builtin -finline-functions"
    " -fno-inline -fno-vectorize -fvectorize -fno-slp-vectorize -fslp-vectorize"
    " -pedantic -ansi -qq -x -create-library -enable-link-options ";

/* The same, and what follows is a plain value. */
static const char *const valued[] = {
    "-cl-std=",     "-cl-ext=",          "-cl-nv-maxrregcount=",
    "-cl-nv-arch=", "-cl-nv-opt-level=", "-cl-intel-reqd-eu-thread-count=",
    "-std=",        "-spir-std=",
};

/* Reasons of those that users try, by prefix. */
static const struct {
    const char *prefix, *reason;
} refused[] = {
    {"-I", "an include directory among the options is not followed; give it as an include "
           "directory"},
    {"-i", "an option reads a file that is not followed (-include, -isystem, ...)"},
    {"-X", "an option for a part of the compiler may read any file"},
    {"-mllvm", "an option for a part of the compiler may read any file"},
    {"-fplugin", "an option loads a plugin, a file that is not followed"},
    {"-fmodule", "an option reads modules, files that are not followed"},
    {"-fprofile", "an option reads a profile, a file that is not followed"},
    {"-save-temps", "an option writes a file, which a hit would not write"},
    {"-dump", "an option writes a file, which a hit would not write"},
    {"@", "an option reads a file of options, which is not followed"},
};

static bool is_listed(const char *token)
{
    const size_t length = strlen(token);
    const char *at = whole;
    while (length > 0 && (at = strchr(at, ' ')) != NULL) {
        at++;
        if (strncmp(at, token, length) == 0 && at[length] == ' ') {
            return true;
        }
    }
    return false;
}

static bool is_plain(const char *value, const char *marks)
{
    for (; *value != '\0'; value++) {
        const unsigned char c = (unsigned char)*value;
        if (c >= 0x80 || (!isalnum(c) && strchr(marks, c) == NULL)) {
            return false;
        }
    }
    return true;
}

static bool is_known(const char *token)
{
    if (kn_text_starts(token, "-D") || kn_text_starts(token, "-U") || is_listed(token)) {
        return true;
    }
    for (size_t i = 0; i < sizeof(valued) / sizeof(valued[0]); i++) {
        if (kn_text_starts(token, valued[i])) {
            return is_plain(token + strlen(valued[i]), "._+-,");
        }
    }
    /* "-Wno-unused", never "-Wl,..." */
    return kn_text_starts(token, "-W") && is_plain(token + 2, "-+=");
}

/* Whether the token after this one is its value, and may be any text that is not an option. */
static bool takes_next(const char *token)
{
    return strcmp(token, "-D") == 0 || strcmp(token, "-U") == 0 || strcmp(token, "-x") == 0 ||
           kn_text_starts(token, "-cl-nv-maxrregcount") || kn_text_starts(token, "-cl-nv-arch") ||
           kn_text_starts(token, "-cl-nv-opt-level");
}

const char *kn_opencl_option_reason(const char *before, const char *token)
{
    if (before != NULL && takes_next(before) && token[0] != '-' && token[0] != '@') {
        return NULL;
    }
    if (token[0] == '-' && is_known(token)) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        if (kn_text_starts(token, refused[i].prefix)) {
            return refused[i].reason;
        }
    }
    return "an option may read a file; the known options are in "
           "docs/reference/backends/opencl.md";
}

/* One reading of an option string: quotes group, or they do not. */
static const char *read_tokens(const char *options, bool grouping, kn_strbuf *token,
                               kn_strbuf *before)
{
    const char *reason = NULL;
    bool odd = false;
    kn_strbuf_clear(before);
    while (reason == NULL) {
        if (grouping) {
            if (!kn_opencl_option_next(&options, token, &odd)) {
                break;
            }
        } else {
            options += strspn(options, " \t\r\n\v\f");
            const size_t length = strcspn(options, " \t\r\n\v\f");
            kn_strbuf_clear(token);
            kn_strbuf_append(token, options, length);
            options += length;
            if (length == 0) {
                break;
            }
        }
        const char *text = kn_strbuf_text(token);
        const bool begins = text[0] == '-' || text[0] == '@';
        reason =
            grouping || begins
                ? kn_opencl_option_reason(before->length > 0 ? kn_strbuf_text(before) : NULL, text)
                : NULL;
        kn_strbuf_clear(before);
        kn_strbuf_append_text(before, text);
    }
    return reason;
}

const char *kn_opencl_options_reason(const char *options)
{
    kn_strbuf token, before;
    kn_strbuf_init(&token, 0);
    kn_strbuf_init(&before, 0);
    const char *reason = read_tokens(options, true, &token, &before);
    if (reason == NULL && strpbrk(options, "\"'\\") != NULL) {
        /* Some drivers give quotes no meaning: a file named within them is an option to those. */
        reason = read_tokens(options, false, &token, &before);
    }
    if (!kn_strbuf_ok(&token) || !kn_strbuf_ok(&before)) {
        reason = "an option is too long to be checked";
    }
    kn_strbuf_deinit(&before);
    kn_strbuf_deinit(&token);
    return reason;
}

bool kn_opencl_options_name_files(const char *options)
{
    for (const char *at = options; (at = strstr(at, "-g")) != NULL; at += 2) {
        const bool starts = at == options || isspace((unsigned char)at[-1]) || at[-1] == '"';
        if (starts && at[2] != '0') {
            return true;
        }
    }
    return false;
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
    *out_value = strcmp(token, "-D") == 0 || strcmp(token, "-x") == 0;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(token, words[i]) == 0) {
            return true;
        }
    }
    return kn_text_starts(token, "-D") || kn_text_starts(token, "-W") ||
           kn_text_starts(token, "-cl-std=");
}

void kn_opencl_options_of_code(const char *options, kn_strbuf *out)
{
    kn_opencl_option option;
    kn_opencl_option_reader reader;
    bool value = false; /* of the token before */
    kn_opencl_option_reader_init(&reader, options);
    while (kn_opencl_option_read(&reader, &option)) {
        if (value) {
            value = false;
        } else if (option.dir == NULL && !is_of_front_end(option.token, &value)) {
            /* As it was written: a driver takes the quotes off by itself. */
            kn_strbuf_append_text(out, out->length > 0 ? " " : "");
            kn_strbuf_append(out, option.whole.data, option.whole.length);
        }
    }
    kn_opencl_option_reader_deinit(&reader);
}
