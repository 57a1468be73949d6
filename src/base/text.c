/* Small text helpers; see text.h. Locale-independent throughout: no isdigit, no strtoull. */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

char *kn_text_copy(const char *text)
{
    return kn_text_copy_n(text, strlen(text));
}

char *kn_text_copy_n(const char *text, size_t length)
{
    size_t size;
    if (!kn_add_size(length, 1, &size)) {
        return NULL;
    }
    char *copy = malloc(size);
    if (copy == NULL) {
        return NULL;
    }
    if (length > 0) {
        memcpy(copy, text, length);
    }
    copy[length] = '\0';
    return copy;
}

void *kn_bytes_copy(const void *data, size_t size)
{
    void *copy = malloc(size > 0 ? size : 1);
    if (copy != NULL && size > 0) {
        memcpy(copy, data, size);
    }
    return copy;
}

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

static size_t sequence_length(char lead)
{
    unsigned char c = (unsigned char)lead;
    return c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
}

/* The number of bytes, at most `length`, after which `text` may be cut: a character that would be
 * torn is left out. Text that is not UTF-8 is cut where it stands. */
static size_t cut_length(const char *text, size_t length)
{
    size_t start = length;
    while (start > 0 && length - start < 4) {
        start--;
        if (!is_continuation(text[start])) {
            return start + sequence_length(text[start]) > length ? start : length;
        }
    }
    return length;
}

void kn_text_put(char *field, size_t field_size, const char *text)
{
    if (field_size == 0) {
        return;
    }
    const char *end = memchr(text, '\0', field_size);
    size_t length = end != NULL ? (size_t)(end - text) : cut_length(text, field_size - 1);
    memmove(field, text, length); /* `text` may be the field itself */
    field[length] = '\0';
}

void kn_text_putf(char *field, size_t field_size, const char *format, ...)
{
    if (field_size == 0) {
        return;
    }
    va_list args;
    va_start(args, format);
    int length = vsnprintf(field, field_size, format, args);
    va_end(args);
    if (length < 0) {
        field[0] = '\0';
    } else if ((size_t)length >= field_size) {
        field[cut_length(field, field_size - 1)] = '\0';
    }
}

void kn_text_put_number(char *field, size_t field_size, const char *before, uint64_t value)
{
    char digits[21];
    size_t first = sizeof(digits) - 1;
    digits[first] = '\0';
    do {
        digits[--first] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    kn_text_put(field, field_size, before);
    const size_t used = strlen(field);
    kn_text_put(field + used, field_size - used, digits + first);
}

void kn_text_flatten(char *line)
{
    for (char *p = line; *p != '\0'; p++) {
        if ((unsigned char)*p < 0x20 || *p == 0x7f) {
            *p = ' ';
        }
    }
}

bool kn_text_starts(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool kn_text_ends(const char *text, const char *suffix)
{
    size_t length = strlen(text);
    size_t suffix_length = strlen(suffix);
    return length >= suffix_length &&
           memcmp(text + length - suffix_length, suffix, suffix_length) == 0;
}

bool kn_text_has_word(const char *list, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = list; at != NULL && (at = strstr(at, word)) != NULL; at += length) {
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0')) {
            return true;
        }
    }
    return false;
}

bool kn_text_has_outer_blanks(const char *text)
{
    static const char blanks[] = " \t\n\v\f\r";
    const size_t length = strlen(text);
    return length > 0 &&
           (strchr(blanks, text[0]) != NULL || strchr(blanks, text[length - 1]) != NULL);
}

/* Reads the decimal number at the start of `text`; NULL if there is none or it is too large. */
static const char *read_u64(const char *text, uint64_t *out_value)
{
    const char *p = text;
    uint64_t value = 0;

    for (; *p >= '0' && *p <= '9'; p++) {
        uint64_t digit = (uint64_t)(*p - '0');
        if (value > (UINT64_MAX - digit) / 10) {
            return NULL;
        }
        value = value * 10 + digit;
    }
    *out_value = value;
    return p > text ? p : NULL;
}

size_t kn_text_distance(const char *a, const char *b)
{
    enum { LONGEST = 32 };
    size_t above[LONGEST + 1], row[LONGEST + 1];
    const size_t width = strlen(b);
    if (width > LONGEST || strlen(a) > LONGEST) {
        return SIZE_MAX;
    }
    for (size_t j = 0; j <= width; j++) {
        row[j] = j;
    }
    for (; *a != '\0'; a++) {
        memcpy(above, row, sizeof(row));
        row[0]++;
        for (size_t j = 0; j < width; j++) {
            const size_t replaced = above[j] + (*a != b[j]);
            const size_t longer = (row[j] < above[j + 1] ? row[j] : above[j + 1]) + 1;
            row[j + 1] = replaced < longer ? replaced : longer;
        }
    }
    return row[width];
}

bool kn_text_to_u64(const char *text, uint64_t *out_value)
{
    uint64_t value;
    const char *end = read_u64(text, &value);
    if (end == NULL || *end != '\0') {
        return false;
    }
    *out_value = value;
    return true;
}

bool kn_text_to_size(const char *text, uint64_t *out_bytes)
{
    static const char units[] = "KMGT";
    uint64_t value;
    const char *end = read_u64(text, &value);
    if (end == NULL) {
        return false;
    }
    unsigned shift = 0;
    if (*end != '\0') {
        const char *unit = strchr(units, *end);
        if (unit == NULL || end[1] != '\0') {
            return false;
        }
        shift = 10 * (unsigned)(unit - units + 1);
    }
    if (value > UINT64_MAX >> shift) {
        return false;
    }
    *out_bytes = value << shift;
    return true;
}

void kn_hex_encode(const void *data, size_t size, char *text)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *bytes = data;

    for (size_t i = 0; i < size; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    text[2 * size] = '\0';
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return -1;
}

bool kn_hex_decode(const char *text, void *data, size_t size)
{
    unsigned char *bytes = data;

    for (size_t i = 0; i < size; i++) {
        int high = hex_digit(text[2 * i]);
        int low = high < 0 ? -1 : hex_digit(text[2 * i + 1]);
        if (low < 0) {
            return false;
        }
        bytes[i] = (unsigned char)(high << 4 | low);
    }
    return text[2 * size] == '\0';
}
