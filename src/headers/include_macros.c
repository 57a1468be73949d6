/* The lines that matter where an include is computed: definitions, and the include itself. They are
 * copied as a preprocessor sees them; what they come to is macro_expand.c's. */
#include "headers/include_scanner.h"

#define LINE_SIZE 1024u

typedef struct line {
    char text[LINE_SIZE];
    size_t length;
    bool fits;
} line;

static void add_char(line *out, int c)
{
    if (out->length < sizeof out->text) {
        out->text[out->length++] = (char)c;
    } else {
        out->fits = false;
    }
}

static void add_text(line *out, const char *from, size_t length)
{
    if (length <= sizeof out->text - out->length) {
        memcpy(out->text + out->length, from, length);
        out->length += length;
    } else {
        out->fits = false;
    }
}

/* Copies a literal up to its closing quote or the line's end. */
static int copy_literal(scanner *s, line *out, int quote)
{
    add_char(out, quote);
    int c = next_character(s);
    while (c >= 0 && !is_newline(c) && c != quote) {
        add_char(out, c);
        if (c == '\\') {
            c = next_character(s);
            if (c < 0 || is_newline(c)) {
                return c;
            }
            add_char(out, c);
        }
        c = next_character(s);
    }
    if (c == quote) {
        add_char(out, c);
        c = next_character(s);
    }
    return c;
}

/* A comment as one blank, or the slash that begins none. */
static int copy_slash(scanner *s, line *out)
{
    const char *slash = s->p++;
    if (skip_comment(s)) {
        add_char(out, ' ');
        return peek_character(s);
    }
    s->p = slash;
    add_char(out, '/');
    return next_character(s);
}

/* Copies from the cursor to the end of the line or, with `nested`, to the parenthesis that closes
 * one which is open. The cursor stays. False if the line is too long. */
static bool copy_line(scanner *s, line *out, bool nested)
{
    const char *from = s->p;
    unsigned open = 1;
    out->length = 0;
    out->fits = true;
    int c = peek_character(s);
    while (c >= 0 && !is_newline(c) && out->fits) {
        if (c == '/') {
            c = copy_slash(s, out);
            continue;
        }
        if (c == '"' || c == '\'') {
            c = copy_literal(s, out, c);
            continue;
        }
        const char *end = skip_class(s->p, s->end, CLASS_WORD);
        if (end > s->p) {
            add_text(out, s->p, (size_t)(end - s->p));
            s->p = end;
            c = peek_character(s);
            continue;
        }
        open += c == '(';
        open -= c == ')';
        if (nested && open == 0) {
            break;
        }
        add_char(out, c);
        c = next_character(s);
    }
    while (out->length > 0 && is_blank((unsigned char)out->text[out->length - 1])) {
        out->length--;
    }
    s->p = from;
    return out->fits;
}

void kn_include_scan_definition(scanner *s, bool is_define)
{
    if (!s->reader->definitions) {
        return;
    }
    line text;
    (void)copy_line(s, &text, false);
    const char *end = skip_class(text.text, text.text + text.length, CLASS_WORD);
    kn_scan_event event = {.kind = is_define ? KN_SCAN_DEFINE : KN_SCAN_UNDEFINE,
                           .text = kn_span_of(text.text, (size_t)(end - text.text))};
    if (is_define) {
        event.rest = kn_span_of(text.fits ? end : NULL, text.length - event.text.length);
    }
    if (event.text.length > 0) {
        s->status = s->reader->report(s->reader->user, &event);
    }
}

bool kn_include_scan_computed(scanner *s, bool next_one, bool probe)
{
    line text;
    if (!s->reader->computed || !copy_line(s, &text, probe)) {
        return false;
    }
    const kn_scan_event event = {.kind = KN_SCAN_COMPUTED,
                                 .text = kn_span_of(text.text, text.length),
                                 .next = next_one,
                                 .probe = probe,
                                 .line = (uint32_t)line_of(s)};
    s->status = s->reader->report(s->reader->user, &event);
    return true;
}
