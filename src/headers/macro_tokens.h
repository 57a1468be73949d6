/* Cuts the line of a directive into the tokens that a preprocessor sees, and puts them together
 * again. What only some preprocessors would read so is not read: the caller is given the reason. */
#ifndef KILN_HEADERS_MACRO_TOKENS_H
#define KILN_HEADERS_MACRO_TOKENS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/span.h"

struct kn_macro;

typedef enum kn_token_kind {
    KN_TOKEN_WORD,
    KN_TOKEN_NUMBER,
    KN_TOKEN_STRING, /* with its quotes */
    KN_TOKEN_MARK,   /* one character of punctuation */
    KN_TOKEN_HASH,   /* # or %: */
    KN_TOKEN_PASTE,  /* ## or %:%: */
    KN_TOKEN_DOTS,   /* ... */
    KN_TOKEN_NONE,   /* an empty argument next to a ## */
} kn_token_kind;

/* Whether there is a blank before a token. Preprocessors differ at the edges of an expansion. */
typedef enum kn_token_space { KN_SPACE_NO, KN_SPACE_YES, KN_SPACE_MAYBE } kn_token_space;

/* The macros that a token came out of, which it is not replaced by again. */
typedef struct kn_hidden {
    const struct kn_macro *macro;
    const struct kn_hidden *next;
} kn_hidden;

typedef struct kn_token {
    struct kn_token *next;
    kn_span text;
    const kn_hidden *hidden;
    kn_token_kind kind;
    kn_token_space space;
    bool pastes; /* a ## of a definition, not one that came in with an argument */
} kn_token;

/* Memory that is given back all at once. */
typedef struct kn_pool {
    struct kn_pool_block *blocks;
    size_t used; /* bytes in all */
    size_t limit;
} kn_pool;

void kn_pool_init(kn_pool *pool, size_t limit);
void kn_pool_deinit(kn_pool *pool);
/* Aligned for anything; NULL when out of memory or over the limit. */
void *kn_pool_take(kn_pool *pool, size_t size);

/* The tokens of a text without comments and line ends, in the pool; the spans of the tokens are
 * pieces of `text`. False: *out_why is set (static text), or NULL when the pool is empty. */
bool kn_tokens_read(kn_span text, kn_pool *pool, kn_token **out_first, const char **out_why);

static inline bool kn_token_is(const kn_token *token, kn_token_kind kind, const char *text)
{
    return token != NULL && token->kind == kind &&
           kn_span_equal(token->text, kn_span_of_text(text));
}

#endif
