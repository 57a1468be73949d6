/* See include_scan.h. One pass over the text with a cursor that steps over line splices, so that
 * every rule below sees the characters that a preprocessor sees. */
#include "headers/include_scan.h"

#include <stdint.h>
#include <string.h>

#include "headers/characters.h"
#include "headers/include_scanner.h"

static void stop_scan(scanner *s, const char *why)
{
    s->stop->why = why;
    s->stop->line = line_of(s);
}

static const char *find_in_text(kn_span text, const char *what)
{
    size_t length = strlen(what);
    if (text.length < length) {
        return NULL;
    }
    const char *p = text.data, *end = text.data + text.length;
    while ((size_t)(end - p) >= length) {
        p = memchr(p, what[0], (size_t)(end - p) - length + 1);
        if (p == NULL || memcmp(p, what, length) == 0) {
            return p;
        }
        p++;
    }
    return NULL;
}

/* --- comments and literals -------------------------------------------------------------------- */

/* Whether there are but blanks and comments between the last string literal and this one. */
static bool follows_literal(const scanner *s, const char *from)
{
    const char *p = s->literal_end;
    while (p != NULL && p < from &&
           (is_blank((unsigned char)*p) || is_newline((unsigned char)*p))) {
        p++;
    }
    return p != NULL && (p == from || *p == '/' || *p == '\\');
}

/* An assembler reads files by itself: .incbin "x", .include "x". */
static void check_assembly(scanner *s, const char *from, bool raw)
{
    const bool goes_on = follows_literal(s, from);
    const size_t size = (size_t)(s->p - from);
    s->stop->once = s->stop->once || (size == 6 && memcmp(from, "\"once\"", size) == 0);
    const char *why =
        kn_assembly_read(&s->assembly, s->reader->pieces, kn_span_of(from, size), raw, goes_on);
    s->literal_end = s->p;
    if (why != NULL) {
        stop_scan(s, why);
    }
}

/* At the opening quote; ends after the closing one, or before the line's end if there is none. */
static void skip_literal(scanner *s)
{
    const char *from = s->p;
    int quote = peek_character(s);
    int c = next_character(s);
    while (c >= 0 && !is_newline(c) && c != quote) {
        if (c == '\\') {
            c = next_character(s);
            if (c < 0 || is_newline(c)) {
                break;
            }
        }
        c = next_character(s);
    }
    if (c == quote) {
        s->p++;
    }
    if (quote == '"') {
        check_assembly(s, from, false);
    }
}

/* At the quote after R. NULL if this is not a raw string; else its end, or s->end if it has
 * none. */
static const char *raw_string_end(const scanner *s)
{
    char closing[20] = ")";
    size_t length = 1;
    const char *p = s->p + 1;
    while (p < s->end && *p != '(') {
        if (length > 16 || strchr(" )\\\"\t\v\f\r\n", *p) != NULL) {
            return NULL;
        }
        closing[length++] = *p++;
    }
    if (p == s->end) {
        return NULL;
    }
    closing[length++] = '"';
    closing[length] = '\0';
    p = find_in_text(kn_span_of(p, (size_t)(s->end - p)), closing);
    return p != NULL ? p + length : s->end;
}

static void skip_raw_string(scanner *s)
{
    const char *from = s->p;
    const char *end = raw_string_end(s);
    if (end == NULL || !s->raw_strings) {
        skip_literal(s);
        if (end != NULL && end != s->p && scan_goes_on(s)) {
            stop_scan(s, "text that reads differently with and without raw strings");
        }
        return;
    }
    s->p = end;
    check_assembly(s, from, true);
}

static void skip_number(scanner *s)
{
    int c = peek_character(s);
    while (is_word(c) || c == '.') {
        bool exponent = c == 'e' || c == 'E' || c == 'p' || c == 'P';
        c = next_character(s);
        if (exponent && (c == '+' || c == '-')) {
            c = next_character(s);
        } else if (c == '\'') {
            const char *separator = s->p;
            c = next_character(s);
            if (!is_word(c)) {
                s->p = separator;
                return;
            }
        }
    }
}

/* --- includes --------------------------------------------------------------------------------- */

/* Reads a word; longer ones are cut, and equal none of those asked for. */
static void read_word(scanner *s, char word[WORD_SIZE])
{
    size_t length = 0;
    for (int c = peek_character(s); is_word(c); c = next_character(s)) {
        if (length < WORD_SIZE - 1) {
            word[length++] = (char)c;
        }
    }
    word[length] = '\0';
}

/* At the quote or bracket of a name, which is reported with the given flags. */
static void read_name(scanner *s, bool next_one, bool probe)
{
    int open = skip_blanks(s);
    if (is_word(open) && !is_digit(open) && kn_include_scan_computed(s, next_one, probe)) {
        return;
    }
    if (open != '"' && open != '<') {
        stop_scan(s, probe ? "computed __has_include" : "computed #include");
        return;
    }
    int close = open == '"' ? '"' : '>';
    size_t length = 0;
    int c = next_character(s);
    while (c > 0 && !is_newline(c) && c != close && length < NAME_SIZE - 1) {
        s->name[length++] = (char)c;
        c = next_character(s);
    }
    if (c != close || length == 0) {
        stop_scan(s, "malformed #include");
        return;
    }
    s->p++;
    s->name[length] = '\0';
    const kn_scan_event event = {.text = kn_span_of(s->name, length),
                                 .quoted = open == '"',
                                 .next = next_one,
                                 .probe = probe};
    s->status = s->reader->report(s->reader->user, &event);
}

/* Macros that hand their parameter on to __has_include are known by their name (CCCL's
 * _CCCL_HAS_INCLUDE): each use of one is then a probe itself, wherever it is defined. One by any
 * other name cannot be followed. */
static bool wraps_probe(const char *word, size_t length)
{
    static const char ending[] = "HAS_INCLUDE";
    const size_t size = sizeof ending - 1;
    /* The last letter alone tells most. */
    return length > size && word[length - 1] == ending[size - 1] &&
           memcmp(word + length - size, ending, size) == 0;
}

/* After the operator's name, which no parenthesis follows: whether a macro gets it, to ask with it.
 * `defined` only asks for the name. */
static bool is_handed_on(scanner *s, const char *word)
{
    static const char asks[] = "defined";
    const size_t size = sizeof asks - 1;
    const int c = skip_blanks(s);
    const char *p = word;
    while (p > s->start && (is_blank((unsigned char)p[-1]) || p[-1] == '(')) {
        p--;
    }
    return (c == ',' || c == ')') &&
           ((size_t)(p - s->start) < size || memcmp(p - size, asks, size) != 0);
}

/* After the operator's name, which begins at `word`. */
static void read_probe(scanner *s, const char *word, bool next_one)
{
    if (skip_blanks(s) == '(') {
        s->p++;
        char argument[WORD_SIZE];
        if (s->in_define && s->parameter[0] != '\0' && !next_one && is_word(skip_blanks(s))) {
            read_word(s, argument);
            if (strcmp(argument, s->parameter) == 0 && skip_blanks(s) == ')') {
                return;
            }
            stop_scan(s, "computed __has_include");
            return;
        }
        read_name(s, next_one, true);
    } else if (s->in_define || is_handed_on(s, word)) {
        stop_scan(s, "computed __has_include");
    }
}

/* After #define, or after a directive that names a macro as #define does. What is only named there
 * is not used there: #ifndef __has_include. */
static void scan_definition(scanner *s, bool is_define, bool changes)
{
    char word[WORD_SIZE];
    s->in_define = is_define;
    s->parameter[0] = '\0';
    (void)skip_blanks(s);
    if (changes) {
        kn_include_scan_definition(s, is_define);
    }
    read_word(s, word);
    if (is_define && wraps_probe(word, strlen(word)) && s->p < s->end && *s->p == '(') {
        if (s->reader->pieces != NULL) {
            s->reader->pieces->marks |= KN_MARK_WRAPS;
        }
        s->p++;
        (void)skip_blanks(s);
        read_word(s, s->parameter);
    }
}

/* After the '#' that begins a line. */
static void read_directive(scanner *s)
{
    char word[WORD_SIZE];
    (void)skip_blanks(s);
    read_word(s, word);
    if (strcmp(word, "include") == 0 || strcmp(word, "import") == 0) {
        s->stop->imports = s->stop->imports || word[1] == 'm';
        read_name(s, false, false);
    } else if (strcmp(word, "include_next") == 0) {
        read_name(s, true, false);
    } else if (strcmp(word, "embed") == 0) {
        stop_scan(s, "#embed");
    } else if (strcmp(word, "define") == 0 || strcmp(word, "undef") == 0 ||
               strcmp(word, "ifdef") == 0 || strcmp(word, "ifndef") == 0) {
        scan_definition(s, word[0] == 'd', word[0] != 'i');
    } else if (strcmp(word, "error") == 0 || strcmp(word, "warning") == 0) {
        skip_line(s); /* prose */
    }
}

/* Whether a word may be one of those that matter: a glance at letters and length. */
static bool is_notable(const char *word, size_t length)
{
    switch (word[0]) {
    case '_':
        return length > 7 && word[1] == '_' && memchr("DThFBb", word[2], 6) != NULL;
    case 'a':
        return length == 6;
    case 's':
        return length == 15;
    case 'o':
        return length == 4;
    case 'R':
    case 'L':
    case 'u':
    case 'U':
        return length <= 3;
    default:
        return word[0] == 'i' && length == 6;
    }
}

static bool is_raw_prefix(const char *word)
{
    static const char *const prefixes[] = {"R", "LR", "uR", "UR", "u8R"};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        if (strcmp(word, prefixes[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* After a word that begins with an underscore. */
static void read_reserved(scanner *s, const char *start, const char *word,
                          const kn_reserved_word *found)
{
    if (strcmp(word, "__has_include") == 0) {
        read_probe(s, start, false);
    } else if (strcmp(word, "__has_include_next") == 0) {
        read_probe(s, start, true);
    } else if (found != NULL && !found->names) {
        stop_scan(s, found->word);
    }
}

static void note_piece(scanner *s, const char *word, size_t length)
{
    if (s->reader->pieces != NULL) {
        kn_pieces_note(s->reader->pieces, word, length);
    }
}

/* After a word that may be one of those that matter, which begins at `start`. */
static void read_notable(scanner *s, const char *start, const char *word)
{
    const kn_reserved_word *found = kn_reserved_find(word, strlen(word));
    s->stop->names = s->stop->names || (found != NULL && found->names);
    s->stop->once = s->stop->once || strcmp(word, "once") == 0;
    if (word[0] == '_') {
        read_reserved(s, start, word, found);
    } else if (is_raw_prefix(word) && peek_character(s) == '"') {
        skip_raw_string(s);
    } else if (strcmp(word, "import") == 0) {
        int c = skip_blanks(s);
        if (c == '<' || c == '"') {
            stop_scan(s, "import of a header unit");
        }
    }
}

static void read_identifier(scanner *s)
{
    const char *start = s->p, *end = skip_class(s->p, s->end, CLASS_WORD);
    const size_t length = (size_t)(end - start);
    const bool is_whole = end == s->end || *end != '\\';
    if (is_whole) {
        note_piece(s, start, length);
        if (!is_notable(start, length) && !wraps_probe(start, length)) {
            s->p = end;
            return;
        }
    }
    char word[WORD_SIZE] = "";
    read_word(s, word);
    if (!is_whole) {
        note_piece(s, word, strlen(word));
    }
    if (wraps_probe(word, strlen(word))) {
        read_probe(s, start, false);
    } else {
        read_notable(s, start, word);
    }
}

/* --- the pass --------------------------------------------------------------------------------- */

static void read_hash(scanner *s, bool at_line_start)
{
    s->p++;
    if (at_line_start) {
        read_directive(s);
        return;
    }
    const int c = peek_character(s);
    if ((c == '#' || c == '%') && s->reader->pieces != NULL) {
        s->reader->pieces->marks |= KN_MARK_JOINED;
    }
}

/* One token, or one character that means nothing here. */
static void scan_token(scanner *s, int c)
{
    bool at_line_start = s->line_start;
    s->line_start = false;
    if (is_digit(c)) {
        skip_number(s);
    } else if (is_word(c)) {
        read_identifier(s);
    } else if (c == '"' || c == '\'') {
        skip_literal(s);
    } else if (c == '#') {
        read_hash(s, at_line_start);
    } else if (c == '%') {
        s->p++;
        if (peek_character(s) == ':') {
            read_hash(s, at_line_start);
        }
    } else if (c == '/') {
        s->p++;
        s->line_start = skip_comment(s) && at_line_start;
    } else if (c == '.') {
        s->p++;
        if (is_digit(peek_character(s))) {
            skip_number(s);
        }
    } else {
        s->p++;
    }
}

static bool has_trigraph(kn_span text)
{
    return find_in_text(text, "?\?=") != NULL || find_in_text(text, "?\?/") != NULL;
}

/* One pass, in one reading. */
static void read_text(scanner *s, kn_span text)
{
    s->p = text.data;
    s->line_start = true;
    s->in_define = false;
    s->literal_end = NULL;
    if (text.length >= 3 && memcmp(text.data, "\xEF\xBB\xBF", 3) == 0) {
        s->p += 3;
    }
    int c = peek_character(s);
    while (c >= 0 && scan_goes_on(s)) {
        if (is_newline(c)) {
            s->line_start = true;
            s->in_define = false;
            s->p++;
        } else if (is_blank(c)) {
            s->p++;
        } else {
            scan_token(s, c);
            s->p = s->line_start ? s->p : skip_dull(s->p, s->end);
        }
        c = peek_character(s);
    }
}

kiln_status kn_include_scan(kn_span text, bool raw_strings, const kn_scan_reader *reader,
                            kn_scan_stop *out_stop)
{
    *out_stop = (kn_scan_stop){.why = NULL};
    if (text.length == 0) {
        return KILN_OK;
    }
    scanner s = {.start = text.data,
                 .p = text.data,
                 .end = text.data + text.length,
                 .raw_strings = raw_strings,
                 .reader = reader,
                 .stop = out_stop};
    if (has_trigraph(text)) {
        stop_scan(&s, "trigraphs");
    }
    for (unsigned reading = 0; reading < READINGS && scan_goes_on(&s); reading++) {
        if ((reading & ~s.met) == 0) {
            s.reading = reading;
            read_text(&s, text);
        }
    }
    return s.status;
}
