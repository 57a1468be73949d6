/* A view of bytes that another object owns. */
#ifndef KILN_BASE_SPAN_H
#define KILN_BASE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef struct kn_span {
    const char *data;
    size_t length;
} kn_span;

static inline kn_span kn_span_of(const void *data, size_t length)
{
    return (kn_span){(const char *)data, length};
}

static inline kn_span kn_span_of_text(const char *text)
{
    return (kn_span){text, text != NULL ? strlen(text) : 0};
}

static inline bool kn_span_equal(kn_span a, kn_span b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.data, b.data, a.length) == 0);
}

#endif
