/* See macro_expand.h. The trials, and what their results name; replacing is macro_replace.c's. */
#include "headers/macro_expand.h"

#include <string.h>

#include "base/text.h"
#include "headers/characters.h"
#include "headers/macro_trial.h"

#define TRIALS_MAX 1024u
#define POOL_LIMIT ((size_t)1 << 20)
#define WORD_LENGTH_MAX 900u /* of what include_macros.c keeps */
#define NAME_LENGTH_MAX ((size_t)4095)

void *kn_trial_doubt(kn_trial *trial, kn_span about, const char *what)
{
    if (trial->doubt->why[0] == '\0') {
        kn_text_putf(trial->doubt->why, sizeof trial->doubt->why, "%.*s%s%s",
                     about.length < 64 ? (int)about.length : 64, about.length > 0 ? about.data : "",
                     about.length > 0 ? " " : "", what);
    }
    return NULL;
}

static void doubt_all(kn_trial *trial, const char *what)
{
    (void)kn_trial_doubt(trial, kn_span_of_text(NULL), what);
}

unsigned kn_trial_choose(kn_trial *trial, unsigned ways)
{
    kn_choices *choices = &trial->choices;
    if (ways <= 1) {
        return 0;
    }
    if (choices->at < choices->count) {
        return choices->taken[choices->at++];
    }
    if (choices->count == KN_TRIAL_CHOICES) {
        doubt_all(trial, "too many macros have several definitions");
        return 0;
    }
    choices->taken[choices->count] = 0;
    choices->ways[choices->count] = ways;
    choices->at = ++choices->count;
    return 0;
}

/* Takes the next combination; false after the last. */
static bool next_choices(kn_choices *choices)
{
    choices->at = 0;
    while (choices->count > 0) {
        const size_t last = choices->count - 1;
        if (++choices->taken[last] < choices->ways[last]) {
            return true;
        }
        choices->count--;
    }
    return false;
}

/* --- words ------------------------------------------------------------------------------------ */

/* Names of libraries that take the compiler's share of names and that no compiler defines. CUDA's
 * core libraries are among the includes of everybody who compiles with NVRTC, in directories of his
 * own. */
static bool is_of_library(kn_span word)
{
    static const char *const prefixes[] = {"__THRUST_", "_THRUST_", "_CCCL_", "_CUB_",
                                           "_LIBCUDACXX_"};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        const size_t length = strlen(prefixes[i]);
        if (word.length > length && memcmp(word.data, prefixes[i], length) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_reserved(kn_span word)
{
    return word.length > 1 && word.data[0] == '_' &&
           (word.data[1] == '_' || (word.data[1] >= 'A' && word.data[1] <= 'Z')) &&
           !is_of_library(word);
}

/* Names that are not reserved and that compilers define all the same, as 1. */
static bool is_often_predefined(kn_span word)
{
    static const char *const names[] = {"linux", "unix", "i386", "arm", "sun", "sparc", "mips",
                                        "hpux",  "vax",  "m68k", "PPC", "bsd", "svr4"};
    if (word.length > 3 &&
        (memcmp(word.data, "cl_", 3) == 0 || memcmp(word.data, "cles", 4) == 0)) {
        return true; /* extensions of OpenCL C */
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (kn_span_equal(word, kn_span_of_text(names[i]))) {
            return true;
        }
    }
    return false;
}

/* The state of a macro that has been met in a definition. */
static bool choose_body(kn_trial *trial, kn_macro *macro, bool predefined, kn_span *out_rest)
{
    if (macro->trial != trial->number) {
        const bool may_be_none = macro->undefined || !macro->given;
        const size_t ways = macro->count + may_be_none + predefined;
        macro->trial = trial->number;
        macro->chosen = ways <= TRIALS_MAX ? kn_trial_choose(trial, (unsigned)ways) : 0;
        if (ways > TRIALS_MAX) {
            doubt_all(trial, "a macro has too many definitions");
        }
    }
    const kn_macro_body *body = macro->bodies;
    for (size_t i = 0; i < macro->chosen && body != NULL; i++) {
        body = body->next;
    }
    if (body == NULL) {
        *out_rest = kn_span_of_text(" 1");
        return macro->chosen > macro->count;
    }
    *out_rest = kn_span_of(body->text, body->length);
    return true;
}

bool kn_trial_body(kn_trial *trial, kn_span word, const kn_macro **out_macro, kn_span *out_rest)
{
    kn_macro *macro = kn_macros_find(trial->macros, word);
    const bool given = macro != NULL && macro->given;
    if (word.length > WORD_LENGTH_MAX) {
        (void)kn_trial_doubt(trial, word, "is too long for a macro's name");
        return false;
    }
    const bool predefined = !given && is_often_predefined(word);
    *out_macro = macro;
    if (!given && !trial->trusted && is_reserved(word)) {
        (void)kn_trial_doubt(trial, word, "may be a macro of the compiler's own");
        return false;
    }
    if (macro == NULL) {
        *out_rest = kn_span_of_text(" 1");
        return predefined && kn_trial_choose(trial, 2) == 1;
    }
    if (macro->opaque) {
        (void)kn_trial_doubt(trial, word, "has a long definition");
        return false;
    }
    return choose_body(trial, macro, predefined, out_rest);
}

/* --- results ---------------------------------------------------------------------------------- */

typedef struct result {
    kn_macro_name_fn *emit;
    void *user;
    kiln_status status;
} result;

static void emit_name(kn_trial *trial, const result *to, kn_span name, bool quoted,
                      kiln_status *status)
{
    if (memchr(name.data, '\\', name.length) != NULL) {
        doubt_all(trial, "its name has a backslash");
    } else if (name.length > NAME_LENGTH_MAX) {
        doubt_all(trial, "its name is too long");
    } else if (name.length > 0) {
        *status = to->emit(to->user, name, quoted);
    }
}

static void name_string(kn_trial *trial, const kn_token *first, result *to)
{
    if (first->next != NULL && first->next->kind == KN_TOKEN_STRING) {
        doubt_all(trial, "it expands to several strings");
        return;
    }
    const kn_span inner = kn_span_of(first->text.data + 1, first->text.length - 2);
    char *name = kn_trial_take(trial, inner.length + 1);
    if (name != NULL) {
        memcpy(name, inner.data, inner.length);
        name[inner.length] = '\0';
        emit_name(trial, to, kn_span_of(name, inner.length), true, &to->status);
    }
}

static void name_bracket(kn_trial *trial, const kn_token *first, result *to)
{
    const kn_token *end = first->next;
    if (end != NULL && end->space == KN_SPACE_NO && end->kind == KN_TOKEN_MARK &&
        strchr("<=:%", end->text.data[0]) != NULL) {
        doubt_all(trial, "it begins with two punctuators");
        return;
    }
    for (; end != NULL && !kn_token_is(end, KN_TOKEN_MARK, ">"); end = end->next) {
        if (end->kind == KN_TOKEN_STRING) {
            doubt_all(trial, "its name has quotes");
            return;
        }
    }
    if (end == NULL || end == first->next) {
        return; /* an error in every compiler */
    }
    const bool padded = first->next->space != KN_SPACE_NO || end->space != KN_SPACE_NO;
    if (padded) {
        doubt_all(trial, "its name begins or ends with a space");
        return;
    }
    const kn_span name = kn_trial_spell(trial, first->next, end, false);
    if (name.data != NULL) {
        emit_name(trial, to, name, false, &to->status);
    }
}

/* What a compiler makes of the expanded line; most of what is neither of the two is an error. */
static void name_result(kn_trial *trial, const kn_token *first, result *to)
{
    if (first == NULL) {
        return;
    }
    if (first->kind == KN_TOKEN_STRING) {
        name_string(trial, first, to);
    } else if (kn_token_is(first, KN_TOKEN_MARK, "<")) {
        name_bracket(trial, first, to);
    } else if (first->kind == KN_TOKEN_WORD && kn_macros_find(trial->macros, first->text) == NULL) {
        (void)kn_trial_doubt(trial, first->text, "is not defined");
    } else if (first->kind == KN_TOKEN_WORD && first->next != NULL &&
               first->next->kind == KN_TOKEN_STRING) {
        doubt_all(trial, "it expands to a string with a prefix");
    }
}

static void make_trial(kn_trial *trial, kn_span text, result *to)
{
    kn_token *first = NULL;
    const char *why = NULL;
    kn_pool_init(&trial->pool, POOL_LIMIT);
    trial->number = ++trial->macros->trials;
    trial->is_void = false;
    trial->steps = 0;
    if (!kn_tokens_read(text, &trial->pool, &first, &why)) {
        doubt_all(trial, why != NULL ? why : "it takes too much memory");
    }
    if (kn_trial_going(trial)) {
        first = kn_trial_expand(trial, first, 0);
    }
    if (kn_trial_going(trial)) {
        name_result(trial, first, to);
    }
    kn_pool_deinit(&trial->pool);
}

kiln_status kn_macros_names(kn_macros *macros, kn_span text, bool trusted, kn_macro_name_fn *emit,
                            void *user, kn_macro_doubt *out_doubt)
{
    *out_doubt = (kn_macro_doubt){0};
    kn_trial trial = {.macros = macros, .trusted = trusted, .doubt = out_doubt};
    result to = {emit, user, KILN_OK};
    unsigned made = 0;
    if (macros->doubtful) {
        doubt_all(&trial, "the options may define more than kiln can read");
        return KILN_OK;
    }
    do {
        if (made++ == TRIALS_MAX) {
            doubt_all(&trial, "it can stand for too many names");
            break;
        }
        make_trial(&trial, text, &to);
    } while (to.status == KILN_OK && out_doubt->why[0] == '\0' && next_choices(&trial.choices));
    return to.status;
}
