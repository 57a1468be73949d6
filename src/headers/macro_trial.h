/* One expansion in which every macro has one certain state. Inside of macro_expand.c and
 * macro_replace.c only. */
#ifndef KILN_HEADERS_MACRO_TRIAL_H
#define KILN_HEADERS_MACRO_TRIAL_H

#include "headers/macro_expand.h"
#include "headers/macro_tokens.h"

#define KN_TRIAL_CHOICES 48u

/* A number of ways at each point where there is more than one. */
typedef struct kn_choices {
    unsigned taken[KN_TRIAL_CHOICES], ways[KN_TRIAL_CHOICES];
    size_t count, at;
} kn_choices;

typedef struct kn_trial {
    kn_macros *macros;
    bool trusted;
    unsigned number;
    kn_choices choices;
    kn_pool pool;
    size_t steps;
    bool is_void; /* a compiler refuses this, so it names nothing */
    bool no_memory;
    kn_macro_doubt *doubt;
} kn_trial;

static inline bool kn_trial_going(const kn_trial *trial)
{
    return !trial->is_void && !trial->no_memory && trial->doubt->why[0] == '\0';
}

/* Ends all trials: the names cannot be known, for what is said of `about` (which may be empty).
 * NULL, for the caller to return. */
void *kn_trial_doubt(kn_trial *trial, kn_span about, const char *what);

/* The way to go at a point with so many of them: 0 to ways - 1. */
unsigned kn_trial_choose(kn_trial *trial, unsigned ways);

/* From the pool; NULL ends the trial. */
void *kn_trial_take(kn_trial *trial, size_t size);
/* A copy that is in no list. */
kn_token *kn_trial_copy(kn_trial *trial, const kn_token *token);

/* The text of the tokens before `end`, blanks between them where there are some; as a string
 * literal if `quoted`. A NUL follows it. Data is NULL when the trial is over. */
kn_span kn_trial_spell(kn_trial *trial, const kn_token *from, const kn_token *end, bool quoted);

/* Whether a word is a macro in this trial; what stands after its name in the definition. */
bool kn_trial_body(kn_trial *trial, kn_span word, const kn_macro **out_macro, kn_span *out_rest);

/* Replaces every macro in a list of tokens, which is used up. */
kn_token *kn_trial_expand(kn_trial *trial, kn_token *tokens, unsigned depth);

#endif
