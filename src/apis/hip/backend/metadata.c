/* See metadata.h. Values are skipped without recursion, by counting what is still to come. */
#include "apis/hip/backend/metadata.h"

#include <stdint.h>
#include <string.h>

typedef struct reader {
    const unsigned char *at, *end;
} reader;

typedef enum token_kind {
    TOKEN_TEXT,
    TOKEN_NUMBER, /* not negative */
    TOKEN_ARRAY,
    TOKEN_MAP,
    TOKEN_OTHER,
} token_kind;

typedef struct token {
    token_kind kind;
    size_t count; /* the number, bytes of a text, members of an array, pairs of a map */
    const char *text;
} token;

/* A big-endian number. */
static bool read_number(reader *from, size_t bytes, size_t *out)
{
    size_t value = 0;
    if ((size_t)(from->end - from->at) < bytes) {
        return false;
    }
    for (size_t i = 0; i < bytes; i++) {
        value = value << 8 | *from->at++;
    }
    *out = value;
    return true;
}

static bool pass_bytes(reader *from, size_t count)
{
    if ((size_t)(from->end - from->at) < count) {
        return false;
    }
    from->at += count;
    return true;
}

/* The first bytes that are ranges: small numbers, texts, arrays and maps. */
static bool read_small(unsigned char first, token *out)
{
    if (first <= 0x7f) {
        out->kind = TOKEN_NUMBER;
        out->count = first;
    } else if (first >= 0xe0) {
        out->kind = TOKEN_OTHER;
    } else if (first <= 0x8f) {
        out->kind = TOKEN_MAP;
        out->count = first & 0x0fu;
    } else if (first <= 0x9f) {
        out->kind = TOKEN_ARRAY;
        out->count = first & 0x0fu;
    } else if (first <= 0xbf) {
        out->kind = TOKEN_TEXT;
        out->count = first & 0x1fu;
    } else {
        return false;
    }
    return true;
}

/* What follows the first bytes from 0xc0 to 0xdf: so many bytes of length, or of the number itself,
 * and after them the length's bytes or members and so many bytes more. */
static const struct {
    unsigned char length_bytes, more;
    token_kind kind;
} forms[32] = {
    [0x00] = {0, 0, TOKEN_OTHER},  [0x02] = {0, 0, TOKEN_OTHER},  [0x03] = {0, 0, TOKEN_OTHER},
    [0x04] = {1, 0, TOKEN_OTHER},  [0x05] = {2, 0, TOKEN_OTHER},  [0x06] = {4, 0, TOKEN_OTHER},
    [0x07] = {1, 1, TOKEN_OTHER},  [0x08] = {2, 1, TOKEN_OTHER},  [0x09] = {4, 1, TOKEN_OTHER},
    [0x0a] = {0, 4, TOKEN_OTHER},  [0x0b] = {0, 8, TOKEN_OTHER},  [0x0c] = {1, 0, TOKEN_NUMBER},
    [0x0d] = {2, 0, TOKEN_NUMBER}, [0x0e] = {4, 0, TOKEN_NUMBER}, [0x0f] = {8, 0, TOKEN_NUMBER},
    [0x10] = {0, 1, TOKEN_OTHER},  [0x11] = {0, 2, TOKEN_OTHER},  [0x12] = {0, 4, TOKEN_OTHER},
    [0x13] = {0, 8, TOKEN_OTHER},  [0x14] = {0, 2, TOKEN_OTHER},  [0x15] = {0, 3, TOKEN_OTHER},
    [0x16] = {0, 5, TOKEN_OTHER},  [0x17] = {0, 9, TOKEN_OTHER},  [0x18] = {0, 17, TOKEN_OTHER},
    [0x19] = {1, 0, TOKEN_TEXT},   [0x1a] = {2, 0, TOKEN_TEXT},   [0x1b] = {4, 0, TOKEN_TEXT},
    [0x1c] = {2, 0, TOKEN_ARRAY},  [0x1d] = {4, 0, TOKEN_ARRAY},  [0x1e] = {2, 0, TOKEN_MAP},
    [0x1f] = {4, 0, TOKEN_MAP},
};

static bool read_token(reader *from, token *out)
{
    *out = (token){TOKEN_OTHER, 0, NULL};
    if (from->at == from->end) {
        return false;
    }
    const unsigned char first = *from->at++;
    if (!read_small(first, out)) {
        const size_t form = first & 0x1fu;
        size_t length = 0;
        if (form == 0x01 || !read_number(from, forms[form].length_bytes, &length) ||
            !pass_bytes(from, forms[form].more)) {
            return false;
        }
        out->kind = forms[form].kind;
        out->count = length;
        if (out->kind == TOKEN_OTHER) {
            return pass_bytes(from, length);
        }
    }
    if (out->kind == TOKEN_TEXT) {
        out->text = (const char *)from->at;
        return pass_bytes(from, out->count);
    }
    /* Every member takes a byte at least. */
    return out->kind == TOKEN_OTHER || out->kind == TOKEN_NUMBER ||
           out->count <= (size_t)(from->end - from->at);
}

static bool skip_value(reader *from)
{
    size_t left = 1;
    while (left > 0) {
        token next;
        if (!read_token(from, &next)) {
            return false;
        }
        left--;
        left += next.kind == TOKEN_ARRAY ? next.count : next.kind == TOKEN_MAP ? 2 * next.count : 0;
    }
    return true;
}

static bool is_text(const token *value, const char *text)
{
    return value->kind == TOKEN_TEXT && value->count == strlen(text) &&
           memcmp(value->text, text, value->count) == 0;
}

/* Reads a map from texts, of which `take` looks at a value, or leaves it to be skipped. */
typedef enum taken { TAKEN, NOT_TAKEN, MALFORMED } taken;
typedef taken take_value(reader *from, const token *key, void *user);

static bool read_map(reader *from, take_value *take, void *user)
{
    token map;
    if (!read_token(from, &map) || map.kind != TOKEN_MAP) {
        return false;
    }
    for (size_t i = 0; i < map.count; i++) {
        token key;
        if (!read_token(from, &key) || key.kind != TOKEN_TEXT) {
            return false;
        }
        const taken what = take(from, &key, user);
        if (what == MALFORMED || (what == NOT_TAKEN && !skip_value(from))) {
            return false;
        }
    }
    return true;
}

static taken take_text(reader *from, kn_metadata_text *out)
{
    token value;
    if (!read_token(from, &value) || value.kind != TOKEN_TEXT) {
        return MALFORMED;
    }
    *out = (kn_metadata_text){value.text, value.count};
    return TAKEN;
}

static taken take_of_kernel(reader *from, const token *key, void *user)
{
    kn_metadata_kernel *kernel = (kn_metadata_kernel *)user;
    if (is_text(key, ".name")) {
        return take_text(from, &kernel->name);
    }
    if (!is_text(key, ".args")) {
        return NOT_TAKEN;
    }
    kernel->args.data = (const char *)from->at;
    const bool good = skip_value(from);
    kernel->args.length = (size_t)((const char *)from->at - kernel->args.data);
    return good ? TAKEN : MALFORMED;
}

static bool read_kernel(reader *from, kn_metadata_visit *visit, void *user)
{
    kn_metadata_kernel kernel = {{NULL, 0}, {NULL, 0}};
    if (!read_map(from, take_of_kernel, &kernel) || kernel.name.data == NULL) {
        return false;
    }
    if (visit != NULL) {
        visit(user, &kernel);
    }
    return true;
}

static bool read_kernels(reader *from, kn_metadata_visit *visit, void *user)
{
    token list;
    if (!read_token(from, &list) || list.kind != TOKEN_ARRAY) {
        return false;
    }
    for (size_t i = 0; i < list.count; i++) {
        if (!read_kernel(from, visit, user)) {
            return false;
        }
    }
    return true;
}

typedef struct whole {
    kn_metadata_visit *visit;
    void *user;
    kn_metadata_text *target;
} whole;

static taken take_of_whole(reader *from, const token *key, void *user)
{
    const whole *all = (const whole *)user;
    if (is_text(key, "amdhsa.kernels")) {
        return read_kernels(from, all->visit, all->user) ? TAKEN : MALFORMED;
    }
    return is_text(key, "amdhsa.target") ? take_text(from, all->target) : NOT_TAKEN;
}

bool kn_metadata_read(const void *data, size_t size, kn_metadata_visit *visit, void *user,
                      kn_metadata_text *out_target)
{
    reader from = {(const unsigned char *)data, (const unsigned char *)data + size};
    whole all = {visit, user, out_target};
    *out_target = (kn_metadata_text){NULL, 0};
    return read_map(&from, take_of_whole, &all);
}

static taken take_of_arg(reader *from, const token *key, void *user)
{
    kn_metadata_arg *arg = (kn_metadata_arg *)user;
    token value;
    if (is_text(key, ".value_kind")) {
        return take_text(from, &arg->kind);
    }
    if (!is_text(key, ".size")) {
        return NOT_TAKEN;
    }
    if (!read_token(from, &value) || value.kind != TOKEN_NUMBER) {
        return MALFORMED;
    }
    arg->size = value.count;
    return TAKEN;
}

bool kn_metadata_read_args(kn_metadata_text args, kn_metadata_arg_visit *visit, void *user)
{
    reader from = {(const unsigned char *)args.data,
                   (const unsigned char *)args.data + args.length};
    token list;
    if (!read_token(&from, &list) || list.kind != TOKEN_ARRAY) {
        return false;
    }
    for (size_t i = 0; i < list.count; i++) {
        kn_metadata_arg arg = {0, {NULL, 0}};
        if (!read_map(&from, take_of_arg, &arg)) {
            return false;
        }
        visit(user, arg);
    }
    return true;
}
