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

/* One bit a character: a set is asked several times for every byte of every header. */
typedef struct char_set {
    uint64_t bits[4];
} char_set;

/* Letters, digits, '_', '$', and all bytes of UTF-8's longer forms. */
static const char_set word_set = {
    {0x03FF001000000000u, 0x07FFFFFE87FFFFFEu, 0xFFFFFFFFFFFFFFFFu, 0xFFFFFFFFFFFFFFFFu}};
/* Blanks, digits and punctuation that mean nothing here: all of ASCII but letters, '_', '$', line
 * ends, NUL and " # % ' . / and the backslash. */
static const char_set dull_set = {{0xFFFF3F4300001A00u, 0x7800000168000001u, 0, 0}};

static inline bool in_set(const char_set *set, unsigned char c)
{
    return (set->bits[c >> 6] >> (c & 63) & 1) != 0;
}

static inline bool is_word(int c)
{
    return c >= 0 && in_set(&word_set, (unsigned char)c);
}

/* The first character from p on that is not in the set. */
static inline const char *skip_set(const char *p, const char *end, const char_set *set)
{
    while (p < end && in_set(set, (unsigned char)*p)) {
        p++;
    }
    return p;
}

/* Past punctuation and plain numbers, of which tables are made. A number that goes on with
 * something else is left to be read as one. */
static inline const char *skip_dull(const char *from, const char *end)
{
    const char *p = skip_set(from, end, &dull_set);
    if (p < end && (is_word((unsigned char)*p) || *p == '.' || *p == '\'' || *p == '\\')) {
        while (p > from && is_digit((unsigned char)p[-1])) {
            p--;
        }
    }
    return p;
}

#endif
