/* The cursor of include_scan.c: it steps over line splices and comments, so that who reads with it
 * sees the characters that a preprocessor sees. Inside of include_scan.c and include_macros.c only.
 */
#ifndef KILN_HEADERS_INCLUDE_SCANNER_H
#define KILN_HEADERS_INCLUDE_SCANNER_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "headers/characters.h"
#include "headers/include_scan.h"

#define NAME_SIZE 4097
#define WORD_SIZE 96

/* Where compilers differ, the text is read each way: an include that only one of them sees counts.
 */
enum {
    READ_BLANKS_PLAINLY = 1, /* a backslash and blanks at a line's end are not a splice (NVRTC) */
    READ_CR_AS_BLANK = 2,    /* a CR without LF ends no line (gcc, NVRTC) */
    READINGS = 4,
};

typedef struct scanner {
    const char *start, *p, *end;
    unsigned reading; /* READ_ flags */
    unsigned met;     /* those that would make a difference */
    bool raw_strings;
    bool line_start; /* only blanks and comments since the line began */
    bool in_define;
    const char *literal_end; /* of the last string literal of this reading, or NULL */
    kn_assembly assembly;
    char parameter[WORD_SIZE]; /* of the macro being defined, if it may wrap __has_include; or "" */
    const kn_scan_reader *reader;
    kiln_status status;
    kn_scan_stop *stop;
    char name[NAME_SIZE];
} scanner;

/* Length of the splice (backslash, blanks, line end) at s->p, or 0. */
static inline size_t splice_length(scanner *s)
{
    const char *q = s->p + 1;
    while (q < s->end && is_blank((unsigned char)*q)) {
        q++;
    }
    if (q == s->end || !is_newline((unsigned char)*q)) {
        return 0;
    }
    const unsigned differs =
        (q > s->p + 1 ? READ_BLANKS_PLAINLY : 0u) | (is_lone_cr(q, s->end) ? READ_CR_AS_BLANK : 0u);
    s->met |= differs;
    if ((differs & s->reading) != 0) {
        return 0;
    }
    return (size_t)(q + (*q == '\r' && !is_lone_cr(q, s->end) ? 2 : 1) - s->p);
}

/* The next character, or -1 at the end; p is left on it. */
static inline int peek_character(scanner *s)
{
    if (s->p < s->end && in_class((unsigned char)*s->p, CLASS_PLAIN)) {
        return (unsigned char)*s->p;
    }
    while (s->p < s->end && *s->p == '\\') {
        size_t splice = splice_length(s);
        if (splice == 0) {
            break;
        }
        s->p += splice;
    }
    if (s->p < s->end && is_lone_cr(s->p, s->end)) {
        s->met |= READ_CR_AS_BLANK;
        return (s->reading & READ_CR_AS_BLANK) != 0 ? ' ' : '\r';
    }
    return s->p < s->end ? (unsigned char)*s->p : -1;
}

static inline int next_character(scanner *s)
{
    s->p++;
    return peek_character(s);
}

static inline bool scan_goes_on(const scanner *s)
{
    return s->stop->why == NULL && s->status == KILN_OK;
}

static inline void skip_line(scanner *s)
{
    for (int c = peek_character(s); c >= 0 && !is_newline(c); c = next_character(s)) {
        s->p = skip_class(s->p + 1, s->end, CLASS_LINE) - 1;
    }
}

/* At the character after a slash. False if it starts no comment. */
static inline bool skip_comment(scanner *s)
{
    int c = peek_character(s);
    if (c == '/') {
        skip_line(s);
        return true;
    }
    if (c != '*') {
        return false;
    }
    s->p++;
    while (s->p < s->end) {
        const char *star = memchr(s->p, '*', (size_t)(s->end - s->p));
        s->p = star != NULL ? star + 1 : s->end;
        if (peek_character(s) == '/') {
            s->p++;
            break;
        }
    }
    return true;
}

/* Blanks and comments of a directive's line. */
static inline int skip_blanks(scanner *s)
{
    for (;;) {
        int c = peek_character(s);
        if (is_blank(c)) {
            s->p++;
            continue;
        }
        if (c == '/') {
            const char *slash = s->p++;
            if (skip_comment(s)) {
                continue;
            }
            s->p = slash;
        }
        return c;
    }
}

/* The number of the line that the cursor is in. */
static inline size_t line_of(const scanner *s)
{
    size_t line = 1;
    for (const char *p = s->start; p < s->p && p < s->end; p++) {
        line += *p == '\n';
    }
    return line;
}

/* Reports a definition to the one who follows computed includes, and takes nothing: what its body
 * holds is read as text. The cursor is on the macro's name; `is_define`: #define, else #undef. */
void kn_include_scan_definition(scanner *s, bool is_define);

/* Reports an #include, or a __has_include, whose name is computed: `probe` ends it at the closing
 * parenthesis. False if nobody wants to know. Takes nothing, as above. */
bool kn_include_scan_computed(scanner *s, bool next_one, bool probe);

#endif
