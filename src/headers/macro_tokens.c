/* See macro_tokens.h. */
#include "headers/macro_tokens.h"

#include <stdlib.h>
#include <string.h>

#include "headers/characters.h"

#define BLOCK_SIZE ((size_t)16 << 10)

typedef struct kn_pool_block {
    struct kn_pool_block *next;
    size_t used, size;
    max_align_t bytes[];
} kn_pool_block;

void kn_pool_init(kn_pool *pool, size_t limit)
{
    *pool = (kn_pool){.limit = limit};
}

void kn_pool_deinit(kn_pool *pool)
{
    while (pool->blocks != NULL) {
        kn_pool_block *next = pool->blocks->next;
        free(pool->blocks);
        pool->blocks = next;
    }
    pool->used = 0;
}

void *kn_pool_take(kn_pool *pool, size_t size)
{
    const size_t align = sizeof(max_align_t);
    if (size > pool->limit) {
        return NULL;
    }
    size = (size + align - 1) / align * align;
    if (size > pool->limit - pool->used) {
        return NULL;
    }
    kn_pool_block *block = pool->blocks;
    if (block == NULL || size > block->size - block->used) {
        const size_t room = size > BLOCK_SIZE ? size : BLOCK_SIZE;
        block = malloc(sizeof *block + room);
        if (block == NULL) {
            return NULL;
        }
        *block = (kn_pool_block){pool->blocks, 0, room};
        pool->blocks = block;
    }
    void *at = (char *)block->bytes + block->used;
    block->used += size;
    pool->used += size;
    return at;
}

/* --- reading ---------------------------------------------------------------------------------- */

typedef struct reader {
    const char *p, *end;
    const char *why;
} reader;

static bool begins_with(const reader *r, const char *with)
{
    const size_t length = strlen(with);
    return (size_t)(r->end - r->p) >= length && memcmp(r->p, with, length) == 0;
}

static void read_string(reader *r)
{
    r->p++;
    while (r->p < r->end && *r->p != '"') {
        r->p += *r->p == '\\' && r->p + 1 < r->end ? 2 : 1;
    }
    if (r->p == r->end) {
        r->why = "a quote that is left open";
        return;
    }
    r->p++;
}

static void read_number(reader *r)
{
    while (r->p < r->end && (is_word((unsigned char)*r->p) || *r->p == '.')) {
        const char c = *r->p++;
        const bool exponent = c == 'e' || c == 'E' || c == 'p' || c == 'P';
        if (exponent && r->p < r->end && (*r->p == '+' || *r->p == '-')) {
            r->p++;
        }
    }
}

static kn_token_kind read_mark(reader *r)
{
    static const struct {
        const char *text;
        kn_token_kind kind;
    } rows[] = {
        {"%:%:", KN_TOKEN_PASTE}, {"##", KN_TOKEN_PASTE}, {"...", KN_TOKEN_DOTS},
        {"%:", KN_TOKEN_HASH},    {"#", KN_TOKEN_HASH},
    };
    if (is_comment(r->p, r->end)) {
        r->why = "a comment in an option";
    } else if (*r->p == '\'' || *r->p == '\\' || *r->p == '\0') {
        r->why = "an apostrophe or a backslash, which compilers read differently";
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (begins_with(r, rows[i].text)) {
            r->p += strlen(rows[i].text);
            return rows[i].kind;
        }
    }
    r->p++;
    return KN_TOKEN_MARK;
}

static kn_token_kind read_token(reader *r)
{
    const unsigned char c = (unsigned char)*r->p;
    if (is_digit(c) || (c == '.' && r->p + 1 < r->end && is_digit((unsigned char)r->p[1]))) {
        read_number(r);
        return KN_TOKEN_NUMBER;
    }
    if (is_word(c)) {
        r->p = skip_class(r->p, r->end, CLASS_WORD);
        return KN_TOKEN_WORD;
    }
    if (c == '"') {
        read_string(r);
        return KN_TOKEN_STRING;
    }
    return read_mark(r);
}

bool kn_tokens_read(kn_span text, kn_pool *pool, kn_token **out_first, const char **out_why)
{
    reader r = {text.data, text.data + text.length, NULL};
    kn_token **end = out_first;
    *out_first = NULL;
    for (;;) {
        const char *from = r.p;
        while (r.p < r.end && is_blank((unsigned char)*r.p)) {
            r.p++;
        }
        if (r.p == r.end) {
            break;
        }
        kn_token *token = kn_pool_take(pool, sizeof *token);
        if (token == NULL) {
            *out_why = NULL;
            return false;
        }
        *token = (kn_token){.space = r.p > from ? KN_SPACE_YES : KN_SPACE_NO};
        from = r.p;
        token->kind = read_token(&r);
        token->text = kn_span_of(from, (size_t)(r.p - from));
        if (r.why != NULL) {
            *out_why = r.why;
            return false;
        }
        *end = token;
        end = &token->next;
    }
    return true;
}
