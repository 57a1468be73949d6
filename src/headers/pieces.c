/* See pieces.h. */
#include "headers/pieces.h"

#include <stdlib.h>
#include <string.h>

#include "headers/characters.h"

#define WORD(text) text, sizeof(text) - 1

/* `assert` is one without any header to some compilers. The two of __has_include read files that
 * are scanned, as long as they are written out. */
const kn_reserved_word kn_reserved_words[KN_RESERVED_WORDS] = {
    {WORD("__DATE__"), false},       {WORD("__TIME__"), false},
    {WORD("__TIMESTAMP__"), false},  {WORD("__has_embed"), false},
    {WORD("__has_include"), false},  {WORD("__has_include_next"), false},
    {WORD("__FILE__"), true},        {WORD("__FILE_NAME__"), true},
    {WORD("__BASE_FILE__"), true},   {WORD("__builtin_FILE"), true},
    {WORD("source_location"), true}, {WORD("__builtin_FILE_NAME"), true},
    {WORD("assert"), true},          {WORD("__builtin_source_location"), true},
};

const uint64_t kn_pieces_follows[64] = {0,
                                        0x0000000000182000u,
                                        0x0000000000000002u,
                                        0x0000000000001000u,
                                        0x0000000000000022u,
                                        0x0000000080080000u,
                                        0x0000000000000200u,
                                        0,
                                        0x0000000000000002u,
                                        0x0000000000007000u,
                                        0,
                                        0,
                                        0x0000000000200020u,
                                        0x0000000000010020u,
                                        0x000000000000000au,
                                        0,
                                        0x0000000080000000u,
                                        0,
                                        0,
                                        0x0000000080100020u,
                                        0x0000000000000222u,
                                        0x0000000000000010u,
                                        0,
                                        0,
                                        0,
                                        0,
                                        0,
                                        0,
                                        0,
                                        0,
                                        0,
                                        0x0008532680104254u,
                                        0,
                                        0x0018000000000000u,
                                        0x0020002000000000u,
                                        0x0000102200000000u,
                                        0x0000002000000000u,
                                        0x0104201080000000u,
                                        0,
                                        0,
                                        0x0000000200000000u,
                                        0x0000d00000000000u,
                                        0,
                                        0,
                                        0x0030800000000000u,
                                        0x0000000480000000u,
                                        0x0000002880000000u,
                                        0x0020400800000000u,
                                        0,
                                        0,
                                        0x0010000800000000u,
                                        0x0008a02080000000u,
                                        0x0000020000000000u,
                                        0x0004021000000000u,
                                        0,
                                        0,
                                        0x0010000000000000u,
                                        0,
                                        0,
                                        0,
                                        0,
                                        0,
                                        0,
                                        0};

/* Names of macros that hand their parameter on to __has_include end so (include_scan.c). */
static const char wrapper[] = "HAS_INCLUDE";
enum { WRAPPER_END = 3 }; /* what is shorter says nothing */

static bool is_asm(const char *word, size_t length)
{
    return (length == 3 && memcmp(word, "asm", 3) == 0) ||
           (length == 5 && memcmp(word, "__asm", 5) == 0) ||
           (length == 7 && memcmp(word, "__asm__", 7) == 0);
}

const kn_reserved_word *kn_reserved_find(const char *word, size_t length)
{
    for (size_t i = 0; i < KN_RESERVED_WORDS; i++) {
        if (length == kn_reserved_words[i].length &&
            memcmp(kn_reserved_words[i].word, word, length) == 0) {
            return &kn_reserved_words[i];
        }
    }
    return NULL;
}

void kn_pieces_keep(kn_pieces *pieces, const char *word, size_t length)
{
    const size_t end = sizeof wrapper - 1;
    if (length >= WRAPPER_END && length < end &&
        memcmp(word, wrapper + end - length, length) == 0) {
        pieces->marks |= KN_MARK_ENDS_WRAPPER;
    }
    pieces->marks |= is_asm(word, length) ? KN_MARK_ASSEMBLES : 0u;
    if (kn_reserved_find(word, length) != NULL) {
        return; /* one that is written out has been seen already */
    }
    for (size_t i = 0; i < KN_RESERVED_WORDS; i++) {
        const char *reserved = kn_reserved_words[i].word;
        const size_t size = kn_reserved_words[i].length;
        for (size_t at = 0; at + length <= size; at++) {
            if (reserved[at] == word[0] && memcmp(reserved + at, word, length) == 0) {
                pieces->found[i][at] |= 1u << length;
            }
        }
    }
}

void kn_pieces_note_text(kn_pieces *pieces, kn_span text)
{
    const char *p = text.data, *end = text.data + text.length;
    while (p < end) {
        const char *word = p;
        p = skip_class(p, end, CLASS_WORD);
        if (p > word) {
            kn_pieces_note(pieces, word, (size_t)(p - word));
        } else {
            pieces->marks |= *p == '#' && p + 1 < end && p[1] == '#' ? KN_MARK_JOINED : 0u;
            p++;
        }
    }
}

void kn_pieces_merge(kn_pieces *to, const kn_pieces *from)
{
    for (size_t i = 0; i < KN_RESERVED_WORDS; i++) {
        for (size_t at = 0; at < KN_RESERVED_LENGTH; at++) {
            to->found[i][at] |= from->found[i][at];
        }
    }
    to->marks |= from->marks;
}

kn_few_pieces *kn_pieces_pack(const kn_pieces *pieces)
{
    size_t count = 0;
    for (size_t i = 0; i < KN_RESERVED_WORDS; i++) {
        for (size_t at = 0; at < KN_RESERVED_LENGTH; at++) {
            count += pieces->found[i][at] != 0;
        }
    }
    kn_few_pieces *few = malloc(sizeof *few + count * sizeof few->spots[0]);
    if (few == NULL) {
        return NULL;
    }
    few->marks = pieces->marks;
    few->count = 0;
    for (size_t i = 0; i < KN_RESERVED_WORDS; i++) {
        for (size_t at = 0; at < KN_RESERVED_LENGTH; at++) {
            const uint32_t lengths = pieces->found[i][at];
            if (lengths != 0) {
                few->spots[few->count++] =
                    (struct kn_piece_spot){(uint16_t)i, (uint16_t)at, lengths};
            }
        }
    }
    return few;
}

void kn_pieces_merge_few(kn_pieces *to, const kn_few_pieces *from)
{
    for (size_t i = 0; i < from->count; i++) {
        to->found[from->spots[i].word][from->spots[i].at] |= from->spots[i].lengths;
    }
    to->marks |= from->marks;
}

/* --- assembler text --------------------------------------------------------------------------- */

static bool ends_with(const kn_assembly *assembly, const char *what)
{
    const size_t size = sizeof assembly->tail, length = strlen(what);
    return memcmp(assembly->tail + size - length, what, length) == 0;
}

/* Assemblers read .INCBIN as .incbin. */
static void push_letter(kn_assembly *assembly, int c)
{
    memmove(assembly->tail, assembly->tail + 1, sizeof assembly->tail - 1);
    assembly->tail[sizeof assembly->tail - 1] = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
}

static int digit_of(char c, int base)
{
    const int value = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : 16;
    return value < base ? value : -1;
}

/* The character that the escape at `p`, after its backslash, stands for. */
static int read_escape(const char **p, const char *end)
{
    const char *at = *p;
    const int base = *at == 'x' ? 16 : 8;
    int value = 0, digits = 0;
    at += base == 16 ? 1 : 0;
    while (at < end && digit_of(*at, base) >= 0 && digits < (base == 8 ? 3 : 8)) {
        value = (value * base + digit_of(*at, base)) & 0xff;
        at++;
        digits++;
    }
    if (digits > 0) {
        *p = at;
        return value;
    }
    const int c = (unsigned char)**p;
    *p += 1;
    return c == 'n' ? '\n' : c == 't' ? '\t' : c;
}

/* After a backslash: past the line end that it takes away, if there is one. */
static bool skip_splice(const char **p, const char *end)
{
    const char *at = *p;
    while (at < end && is_blank((unsigned char)*at)) {
        at++;
    }
    const bool is_splice = at < end && is_newline((unsigned char)*at);
    if (is_splice) {
        *p = at + (*at == '\r' && at + 1 < end && at[1] == '\n' ? 2 : 1);
    }
    return is_splice;
}

/* Directives that read a file, and those of which others are made. */
static const char *find_directive(const kn_assembly *assembly)
{
    if (ends_with(assembly, ".incbin")) {
        return "assembler text that reads a file";
    }
    for (const char *c = " \t\"\\/"; *c != '\0'; c++) {
        const char include[] = {'.', 'i', 'n', 'c', 'l', 'u', 'd', 'e', *c, '\0'};
        if (ends_with(assembly, include)) {
            return "assembler text that reads a file";
        }
    }
    return ends_with(assembly, ".macro") || ends_with(assembly, ".irp") ? "macros of an assembler"
                                                                        : NULL;
}

/* What of a directive is at the literal's end, or at its beginning. */
static void note_parts(kn_pieces *pieces, const kn_assembly *assembly, const char *first,
                       size_t first_length)
{
    static const char *const directives[] = {".incbin", ".include"};
    for (size_t i = 0; i < sizeof directives / sizeof directives[0]; i++) {
        char part[10] = "";
        for (size_t length = 2; length <= strlen(directives[i]); length++) {
            memcpy(part, directives[i], length);
            pieces->marks |= ends_with(assembly, part) ? KN_MARK_OPENS : 0u;
        }
        const size_t name = strlen(directives[i]) - 1;
        const size_t shorter = first_length < name ? first_length : name;
        if (first_length > 0 && memcmp(first, directives[i] + 1, shorter) == 0) {
            pieces->marks |= KN_MARK_BEGINS_NAME;
        }
    }
    pieces->marks |= ends_with(assembly, ".") ? KN_MARK_ENDS_IN_DOT : 0u;
}

/* Most literals begin no directive, and hold none. */
static bool is_plain(const char *p, size_t length)
{
    return length == 0 || (*p != 'i' && *p != 'I' && memchr(p, '.', length) == NULL &&
                           memchr(p, '\\', length) == NULL);
}

/* The next character of a literal, or -1 for none: a splice. */
static int take_letter(const char **p, const char *end, bool raw)
{
    const int c = (unsigned char)*(*p)++;
    if (c != '\\' || raw) {
        return c;
    }
    return skip_splice(p, end) ? -1 : *p < end ? read_escape(p, end) : c;
}

/* Whether a directive that matters may end in the letter. */
static bool may_end_directive(int c)
{
    return c == 0 || strchr(" \t\"\\/nopNOP", c) != NULL;
}

const char *kn_assembly_read(kn_assembly *assembly, kn_pieces *pieces, kn_span literal, bool raw,
                             bool goes_on)
{
    const char *p = literal.data + 1, *end = literal.data + literal.length;
    const char *why = NULL;
    char first[8] = "";
    size_t first_length = 0;
    end -= end > p && end[-1] == '"' ? 1 : 0;
    if (!goes_on) {
        memset(assembly, 0, sizeof *assembly);
        if (is_plain(p, (size_t)(end - p))) {
            return NULL;
        }
    }
    while (p < end && why == NULL) {
        const int c = take_letter(&p, end, raw);
        if (c < 0) {
            continue;
        }
        push_letter(assembly, c);
        if (first_length < sizeof first) {
            first[first_length++] = assembly->tail[sizeof assembly->tail - 1];
        }
        why = may_end_directive(c) ? find_directive(assembly) : NULL;
    }
    if (pieces != NULL) {
        note_parts(pieces, assembly, first, first_length);
    }
    return why;
}

/* --- the end ---------------------------------------------------------------------------------- */

/* Whether a row of pieces makes the word, however many: P(__, has, _, in, clu, de). */
static bool can_make_word(const kn_pieces *pieces, size_t row)
{
    const size_t size = kn_reserved_words[row].length;
    bool made[KN_RESERVED_LENGTH + 1] = {true};
    for (size_t at = 0; at < size; at++) {
        for (size_t n = 1; made[at] && at + n <= size; n++) {
            made[at + n] = made[at + n] || (pieces->found[row][at] >> n & 1) != 0;
        }
    }
    return made[size];
}

static bool can_make_any(const kn_pieces *pieces, bool names)
{
    for (size_t i = 0; (pieces->marks & KN_MARK_JOINED) != 0 && i < KN_RESERVED_WORDS; i++) {
        if (kn_reserved_words[i].names == names && can_make_word(pieces, i)) {
            return true;
        }
    }
    return false;
}

static bool has_marks(const kn_pieces *pieces, unsigned marks)
{
    return (pieces->marks & marks) == marks;
}

const char *kn_pieces_stop(const kn_pieces *pieces)
{
    if (can_make_any(pieces, false) ||
        has_marks(pieces, KN_MARK_JOINED | KN_MARK_WRAPS | KN_MARK_ENDS_WRAPPER)) {
        return "words that ## may join to __TIME__ or __has_include";
    }
    return has_marks(pieces, KN_MARK_ASSEMBLES | KN_MARK_OPENS) ||
                   has_marks(pieces, KN_MARK_ASSEMBLES | KN_MARK_ENDS_IN_DOT | KN_MARK_BEGINS_NAME)
               ? "assembler text in pieces that may read a file"
               : NULL;
}

bool kn_pieces_name_file(const kn_pieces *pieces)
{
    return can_make_any(pieces, true);
}
