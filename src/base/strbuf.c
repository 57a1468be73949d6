/* The growing byte buffer; see strbuf.h for the rules of the sticky failure. */
#include "base/strbuf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

#define FIRST_CAPACITY 64

void kn_strbuf_init(kn_strbuf *buffer, size_t limit)
{
    *buffer = (kn_strbuf){.limit = limit != 0 ? limit : KN_STRBUF_DEFAULT_LIMIT};
}

void kn_strbuf_deinit(kn_strbuf *buffer)
{
    free(buffer->data);
    kn_strbuf_init(buffer, buffer->limit);
}

void kn_strbuf_clear(kn_strbuf *buffer)
{
    buffer->length = 0;
    buffer->failed = false;
    if (buffer->data != NULL) {
        buffer->data[0] = '\0';
    }
}

/* Room for `size` more bytes and the NUL is there, and within the limit. */
static bool has_room(const kn_strbuf *buffer, size_t size)
{
    return !buffer->failed && size < buffer->capacity - buffer->length &&
           size <= buffer->limit - buffer->length;
}

/* Makes room for `size` more bytes and the NUL, or sets the failure. */
static bool reserve_bytes(kn_strbuf *buffer, size_t size)
{
    size_t needed;
    if (buffer->failed) {
        return false;
    }
    if (!kn_add_size(buffer->length, size, &needed) || needed > buffer->limit ||
        !kn_add_size(needed, 1, &needed)) {
        buffer->failed = true;
        return false;
    }
    if (needed <= buffer->capacity) {
        return true;
    }
    size_t capacity = buffer->capacity > 0 ? buffer->capacity : FIRST_CAPACITY;
    while (capacity < needed) {
        if (!kn_mul_size(capacity, 2, &capacity)) {
            capacity = needed;
        }
    }
    char *data = realloc(buffer->data, capacity);
    if (data == NULL) {
        buffer->failed = true;
        return false;
    }
    buffer->data = data;
    buffer->capacity = capacity;
    return true;
}

void kn_strbuf_reserve(kn_strbuf *buffer, size_t size)
{
    const bool empty = buffer->data == NULL;
    if (reserve_bytes(buffer, size) && empty) {
        buffer->data[0] = '\0';
    }
}

void kn_strbuf_append(kn_strbuf *buffer, const void *data, size_t size)
{
    if (size == 0 || (!has_room(buffer, size) && !reserve_bytes(buffer, size))) {
        return;
    }
    memcpy(buffer->data + buffer->length, data, size);
    buffer->length += size;
    buffer->data[buffer->length] = '\0';
}

void kn_strbuf_append_text(kn_strbuf *buffer, const char *text)
{
    kn_strbuf_append(buffer, text, strlen(text));
}

void kn_strbuf_append_char(kn_strbuf *buffer, char c)
{
    if (!has_room(buffer, 1) && !reserve_bytes(buffer, 1)) {
        return;
    }
    buffer->data[buffer->length++] = c;
    buffer->data[buffer->length] = '\0';
}

void kn_strbuf_append_u64(kn_strbuf *buffer, uint64_t value)
{
    char digits[20];
    size_t first = sizeof digits;
    do {
        digits[--first] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    kn_strbuf_append(buffer, digits + first, sizeof digits - first);
}

void kn_strbuf_printf(kn_strbuf *buffer, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    kn_strbuf_vprintf(buffer, format, args);
    va_end(args);
}

void kn_strbuf_vprintf(kn_strbuf *buffer, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    /* Most texts fit into what is there already: then formatting once is enough. */
    const size_t room = buffer->data != NULL ? buffer->capacity - buffer->length : 0;
    char *end = room > 0 ? buffer->data + buffer->length : NULL;
    int length = vsnprintf(end, room, format, args);
    if (length < 0) {
        buffer->failed = true;
    } else if (!reserve_bytes(buffer, (size_t)length)) {
        if (end != NULL) {
            *end = '\0';
        }
    } else {
        if ((size_t)length >= room) { /* an empty text, too: new memory wants its NUL */
            (void)vsnprintf(buffer->data + buffer->length, (size_t)length + 1, format, again);
        }
        buffer->length += (size_t)length;
    }
    va_end(again);
}

bool kn_strbuf_ok(const kn_strbuf *buffer)
{
    return !buffer->failed;
}

const char *kn_strbuf_text(const kn_strbuf *buffer)
{
    return buffer->data != NULL ? buffer->data : "";
}

char *kn_strbuf_detach(kn_strbuf *buffer, size_t *out_length)
{
    char *data = NULL;
    size_t length = 0;

    if (!buffer->failed) {
        data = buffer->data != NULL ? buffer->data : calloc(1, 1);
        length = data != NULL ? buffer->length : 0;
        buffer->data = NULL;
    }
    kn_strbuf_deinit(buffer);
    if (out_length != NULL) {
        *out_length = length;
    }
    return data;
}
