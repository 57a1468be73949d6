/* A growing byte buffer with a stated maximum and a sticky failure: append calls need no check, the
 * one who takes the result asks kn_strbuf_ok. The bytes are always NUL-terminated. */
#ifndef KILN_BASE_STRBUF_H
#define KILN_BASE_STRBUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kiln/export.h"

typedef struct kn_strbuf {
    char *data; /* NULL while empty; use kn_strbuf_text */
    size_t length;
    size_t capacity;
    size_t limit;
    bool failed;
} kn_strbuf;

#define KN_STRBUF_DEFAULT_LIMIT ((size_t)64 << 20)

/* limit 0: KN_STRBUF_DEFAULT_LIMIT. */
void kn_strbuf_init(kn_strbuf *buffer, size_t limit);
void kn_strbuf_deinit(kn_strbuf *buffer);
void kn_strbuf_clear(kn_strbuf *buffer);                /* keeps the memory, forgets a failure */
void kn_strbuf_reserve(kn_strbuf *buffer, size_t size); /* room for so many bytes more, at once */
void kn_strbuf_append(kn_strbuf *buffer, const void *data, size_t size);
void kn_strbuf_append_text(kn_strbuf *buffer, const char *text);
void kn_strbuf_append_char(kn_strbuf *buffer, char c);
void kn_strbuf_append_u64(kn_strbuf *buffer, uint64_t value); /* decimal, much faster than %zu */
void kn_strbuf_printf(kn_strbuf *buffer, const char *format, ...) KILN_PRINTF(2, 3);
void kn_strbuf_vprintf(kn_strbuf *buffer, const char *format, va_list args) KILN_PRINTF(2, 0);
/* False after any append that ran out of memory or over the limit. */
bool kn_strbuf_ok(const kn_strbuf *buffer);
const char *kn_strbuf_text(const kn_strbuf *buffer); /* "" while empty */
/* Hands the bytes over (free()) and empties the buffer; NULL after a failure. */
char *kn_strbuf_detach(kn_strbuf *buffer, size_t *out_length);

#endif
