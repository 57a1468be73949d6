/* Looks for #version. This file must not know what a version is good for. */
#include "apis/vulkan/backend/instance.h"

#include <stdbool.h>
#include <string.h>

typedef struct reader {
    const char *at, *end;
} reader;

static bool is_next(const reader *r, const char *word)
{
    const size_t length = strlen(word);
    return (size_t)(r->end - r->at) >= length && memcmp(r->at, word, length) == 0;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\v' || c == '\f';
}

static bool is_break(char c)
{
    return c == '\n' || c == '\r';
}

/* False if there is no comment here. No backslash joins lines outside of one: glslang looks for
 * #version before it joins any. */
static bool skip_comment(reader *r)
{
    const size_t size = kn_glsl_skip_comment(r->at, (size_t)(r->end - r->at), 0);
    r->at += size;
    return size > 0;
}

static void skip_space(reader *r, bool lines)
{
    while (r->at < r->end && (is_blank(*r->at) || (lines && is_break(*r->at)) || is_next(r, "/*") ||
                              (lines && is_next(r, "//")))) {
        if (!skip_comment(r)) {
            r->at++;
        }
    }
}

static void skip_line(reader *r)
{
    while (r->at < r->end && !is_break(*r->at)) {
        if (!skip_comment(r)) {
            r->at++;
        }
    }
}

/* At a '#': the number, or -1 if it is another directive. */
static int read_version(reader *r)
{
    int number = 0;
    r->at++;
    skip_space(r, false);
    if (!is_next(r, "version")) {
        return -1;
    }
    r->at += strlen("version");
    skip_space(r, false);
    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9' && number < 100000; r->at++) {
        number = number * 10 + (*r->at - '0');
    }
    return number;
}

int kn_glsl_version(const char *text, size_t length)
{
    reader r = {text, text + length};
    if (is_next(&r, "\xEF\xBB\xBF")) {
        r.at += 3;
    }
    for (;;) {
        skip_space(&r, true);
        if (r.at >= r.end) {
            return 0;
        }
        const int number = *r.at == '#' ? read_version(&r) : -1;
        if (number >= 0) {
            return number;
        }
        skip_line(&r);
    }
}
