/* Small text helpers: copies, numbers with units, hexadecimal. */
#ifndef KILN_BASE_TEXT_H
#define KILN_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kiln/export.h"

/* free()able copies, NULL when out of memory. */
char *kn_text_copy(const char *text);
char *kn_text_copy_n(const char *text, size_t length);
void *kn_bytes_copy(const void *data, size_t size);

/* Copies into a fixed field, cut at a UTF-8 boundary, always terminated. */
void kn_text_put(char *field, size_t field_size, const char *text);
/* The same of a text with a number after it, which takes less time than a format. */
void kn_text_put_number(char *field, size_t field_size, const char *before, uint64_t value);
void kn_text_putf(char *field, size_t field_size, const char *format, ...) KILN_PRINTF(3, 4);

/* Makes one line of it: control characters, line breaks among them, become blanks. */
void kn_text_flatten(char *line);

bool kn_text_starts(const char *text, const char *prefix);
bool kn_text_ends(const char *text, const char *suffix);
/* Whether a list with blanks between its words has this one; a list may be NULL. */
bool kn_text_has_word(const char *list, const char *word);
/* Whether it begins or ends with white space, which compilers take off a directory's name. */
bool kn_text_has_outer_blanks(const char *text);

/* The edit distance of two words; SIZE_MAX for one of more than 32 bytes. */
size_t kn_text_distance(const char *a, const char *b);

/* A whole decimal number, and one with K, M, G or T (powers of 1024; "2G", "512M", "100"). False on
 * anything else, overflow included. */
bool kn_text_to_u64(const char *text, uint64_t *out_value);
bool kn_text_to_size(const char *text, uint64_t *out_bytes);

void kn_hex_encode(const void *data, size_t size, char *text); /* 2*size + 1 bytes */
bool kn_hex_decode(const char *text, void *data, size_t size); /* exactly 2*size digits */

#endif
