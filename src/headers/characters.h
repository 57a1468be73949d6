/* What a preprocessor calls a word, a blank, a line end: classes of characters for include_scan.c.
 * Nothing here knows of a text as a whole. */
#ifndef KILN_HEADERS_CHARACTERS_H
#define KILN_HEADERS_CHARACTERS_H

#include <stdbool.h>
#include <stdint.h>

static inline bool is_newline(int c)
{
    return c == '\n' || c == '\r';
}

static inline bool is_blank(int c)
{
    return c == ' ' || c == '\t' || c == '\f' || c == '\v';
}

static inline bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

/* A CR that no LF follows. */
static inline bool is_lone_cr(const char *p, const char *end)
{
    return *p == '\r' && (p + 1 == end || p[1] != '\n');
}

/* A slash that begins a comment. */
static inline bool is_comment(const char *p, const char *end)
{
    return *p == '/' && p + 1 < end && (p[1] == '/' || p[1] == '*');
}

enum {
    CLASS_WORD = 1,  /* letters, digits, '_', '$', and all bytes of UTF-8's longer forms */
    CLASS_DULL = 2,  /* blanks, digits and punctuation that mean nothing here: all of ASCII but
                        letters, '_', '$', line ends, NUL and " # % ' . / and the backslash */
    CLASS_LINE = 4,  /* all but line ends and the backslash */
    CLASS_PLAIN = 8, /* all but CR and the backslash, which may mean something else than they are */
};

/* Several bits a character: one is asked for several times for every byte of every header. */
static const uint8_t char_classes[256] = {
    12, 12, 12, 12, 12, 12, 12, 12, 12, 14, 8,  14, 14, 0,  12, 12, 12, 12, 12, 12, 12, 12, 12, 12,
    12, 12, 12, 12, 12, 12, 12, 12, 14, 14, 12, 12, 13, 12, 14, 12, 14, 14, 14, 14, 14, 14, 12, 12,
    15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 14, 14, 14, 14, 14, 14, 14, 13, 13, 13, 13, 13, 13, 13,
    13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 14, 0,  14, 14, 13,
    14, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13,
    13, 13, 13, 14, 14, 14, 14, 12, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13,
    13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13,
    13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13,
    13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13,
    13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13,
    13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13,
};

static inline bool in_class(unsigned char c, unsigned classes)
{
    return (char_classes[c] & classes) != 0;
}

static inline bool is_word(int c)
{
    return c >= 0 && in_class((unsigned char)c, CLASS_WORD);
}

/* The first character from p on that is not in the class. */
static inline const char *skip_class(const char *p, const char *end, unsigned classes)
{
    while (p < end && in_class((unsigned char)*p, classes)) {
        p++;
    }
    return p;
}

/* Past punctuation and plain numbers, of which tables are made. A number that goes on with
 * something else is left to be read as one. */
static inline const char *skip_dull(const char *from, const char *end)
{
    const char *p = skip_class(from, end, CLASS_DULL);
    if (p < end && (is_word((unsigned char)*p) || *p == '.' || *p == '\'' || *p == '\\')) {
        while (p > from && is_digit((unsigned char)p[-1])) {
            p--;
        }
    }
    return p;
}

#endif
