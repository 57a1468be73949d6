/* Replaces the macros of one trial: objects, functions, # and ##, with the set of names that each
 * token is not replaced by again (Prosser's algorithm, which the C standard was written from). */
#include <stdlib.h>
#include <string.h>

#include "headers/macro_trial.h"

#define STEPS_MAX 20000u
#define DEPTH_MAX 24u
#define PARAMETERS_MAX 32u
#define SPELLING_MAX ((size_t)8192)

typedef struct token_list {
    kn_token *first;
    kn_token **end;
} token_list;

typedef struct argument {
    kn_token *raw, *expanded;
    bool is_expanded;
} argument;

/* A definition in use. */
typedef struct call {
    kn_trial *trial;
    kn_token *body; /* after the parameters */
    kn_span parameters[PARAMETERS_MAX];
    size_t parameter_count;
    bool is_function, is_variadic;
    argument arguments[PARAMETERS_MAX];
    size_t argument_count;
    unsigned depth;
} call;

static void list_init(token_list *list)
{
    list->first = NULL;
    list->end = &list->first;
}

static void list_add(token_list *list, kn_token *token)
{
    if (token != NULL) {
        token->next = NULL;
        *list->end = token;
        list->end = &token->next;
    }
}

void *kn_trial_take(kn_trial *trial, size_t size)
{
    void *memory = kn_pool_take(&trial->pool, size);
    if (memory == NULL) {
        return kn_trial_doubt(trial, kn_span_of_text(NULL), "it takes too much memory");
    }
    return memory;
}

kn_token *kn_trial_copy(kn_trial *trial, const kn_token *token)
{
    kn_token *copy = kn_trial_take(trial, sizeof *copy);
    if (copy != NULL) {
        *copy = *token;
        copy->next = NULL;
    }
    return copy;
}

/* --- spelling --------------------------------------------------------------------------------- */

static bool has_space(kn_trial *trial, const kn_token *token)
{
    return token->space == KN_SPACE_YES ||
           (token->space == KN_SPACE_MAYBE && kn_trial_choose(trial, 2) == 1);
}

kn_span kn_trial_spell(kn_trial *trial, const kn_token *from, const kn_token *end, bool quoted)
{
    char text[SPELLING_MAX];
    size_t length = 0;
    if (quoted) {
        text[length++] = '"';
    }
    for (const kn_token *token = from; token != end; token = token->next) {
        if (2 * token->text.length + 4 > sizeof text - length) {
            (void)kn_trial_doubt(trial, kn_span_of_text(NULL), "its name is too long");
            return kn_span_of(NULL, 0);
        }
        if (token != from && has_space(trial, token)) {
            text[length++] = ' ';
        }
        const bool escapes = quoted && token->kind == KN_TOKEN_STRING;
        for (size_t i = 0; i < token->text.length; i++) {
            if (escapes && (token->text.data[i] == '"' || token->text.data[i] == '\\')) {
                text[length++] = '\\';
            }
            text[length++] = token->text.data[i];
        }
    }
    if (quoted) {
        text[length++] = '"';
    }
    char *copy = kn_trial_take(trial, length + 1);
    if (copy == NULL) {
        return kn_span_of(NULL, 0);
    }
    memcpy(copy, text, length);
    copy[length] = '\0';
    return kn_span_of(copy, length);
}

/* --- sets of hidden macros -------------------------------------------------------------------- */

static bool is_hidden(const kn_hidden *set, const kn_macro *macro)
{
    for (; set != NULL; set = set->next) {
        if (set->macro == macro) {
            return true;
        }
    }
    return false;
}

static const kn_hidden *hide_macro(kn_trial *trial, const kn_hidden *set, const kn_macro *macro)
{
    kn_hidden *added =
        macro == NULL || is_hidden(set, macro) ? NULL : kn_trial_take(trial, sizeof *added);
    if (added == NULL) {
        return set;
    }
    *added = (kn_hidden){macro, set};
    return added;
}

static const kn_hidden *unite_hidden(kn_trial *trial, const kn_hidden *a, const kn_hidden *b)
{
    for (; b != NULL; b = b->next) {
        a = hide_macro(trial, a, b->macro);
    }
    return a;
}

static const kn_hidden *intersect_hidden(kn_trial *trial, const kn_hidden *a, const kn_hidden *b)
{
    const kn_hidden *both = NULL;
    for (; a != NULL; a = a->next) {
        both = is_hidden(b, a->macro) ? hide_macro(trial, both, a->macro) : both;
    }
    return both;
}

/* --- definitions ------------------------------------------------------------------------------ */

static const char not_a_definition[] = "has a definition that compilers read differently";

/* Reads "(a, b, ...)" before the body; `at` is after the parenthesis. */
static void read_parameters(call *c, kn_span name, const kn_token *at)
{
    bool wants_name = !kn_token_is(at, KN_TOKEN_MARK, ")");
    while (wants_name && at != NULL && c->parameter_count < PARAMETERS_MAX && !c->is_variadic) {
        const bool is_name = at->kind == KN_TOKEN_WORD;
        c->parameters[c->parameter_count++] = is_name ? at->text : kn_span_of_text("__VA_ARGS__");
        c->is_variadic = at->kind == KN_TOKEN_DOTS;
        if (!is_name && !c->is_variadic) {
            break;
        }
        at = at->next;
        if (is_name && at != NULL && at->kind == KN_TOKEN_DOTS) { /* "args...", as GNU has it */
            c->is_variadic = true;
            at = at->next;
        }
        wants_name = kn_token_is(at, KN_TOKEN_MARK, ",");
        at = wants_name ? at->next : at;
    }
    if (wants_name || !kn_token_is(at, KN_TOKEN_MARK, ")")) {
        (void)kn_trial_doubt(c->trial, name, not_a_definition);
        return;
    }
    c->body = at->next;
}

static void read_macro_definition(call *c, kn_span name, kn_span rest)
{
    const char *why = NULL;
    kn_token *first = NULL;
    if (!kn_tokens_read(rest, &c->trial->pool, &first, &why)) {
        (void)kn_trial_doubt(c->trial, name,
                             why != NULL ? not_a_definition : "takes too much memory");
        return;
    }
    c->body = first;
    if (rest.length > 0 && rest.data[0] == '(') {
        c->is_function = true;
        read_parameters(c, name, first->next);
    }
    if (c->body != NULL) {
        c->body->space = KN_SPACE_NO;
    }
    const kn_token *last = NULL;
    for (kn_token *token = c->body; token != NULL; token = token->next) {
        token->pastes = token->kind == KN_TOKEN_PASTE;
        if (kn_token_is(token, KN_TOKEN_WORD, "__VA_OPT__")) {
            (void)kn_trial_doubt(c->trial, name, "has __VA_OPT__ in its definition");
        }
        last = token;
    }
    if (c->body != NULL && (c->body->pastes || last->pastes)) {
        (void)kn_trial_doubt(c->trial, name, not_a_definition);
    }
}

static const size_t no_parameter = (size_t)-1;

static size_t find_parameter(const call *c, const kn_token *token)
{
    for (size_t i = 0; token != NULL && token->kind == KN_TOKEN_WORD && i < c->parameter_count;
         i++) {
        if (kn_span_equal(c->parameters[i], token->text)) {
            return i;
        }
    }
    return no_parameter;
}

/* --- arguments -------------------------------------------------------------------------------- */

static bool is_last_variadic(const call *c, size_t count)
{
    return c->is_variadic && count == c->parameter_count;
}

/* Reads what stands between the parentheses; `at` is after the opening one. The closing one. */
static kn_token *read_arguments(call *c, kn_token *at)
{
    unsigned nested = 0;
    token_list list;
    list_init(&list);
    c->argument_count = 1;
    while (at != NULL) {
        kn_token *next = at->next;
        const bool closes = kn_token_is(at, KN_TOKEN_MARK, ")");
        if (nested == 0 && closes) {
            break;
        }
        if (nested == 0 && kn_token_is(at, KN_TOKEN_MARK, ",") &&
            !is_last_variadic(c, c->argument_count)) {
            c->arguments[c->argument_count - 1].raw = list.first;
            list_init(&list);
            if (++c->argument_count > PARAMETERS_MAX) {
                c->trial->is_void = true;
                return NULL;
            }
        } else {
            nested += kn_token_is(at, KN_TOKEN_MARK, "(");
            nested -= closes;
            list_add(&list, at);
        }
        at = next;
    }
    c->arguments[c->argument_count - 1].raw = list.first;
    return at;
}

/* Whether a compiler takes this number of arguments; what a variadic macro lacks is empty. */
static bool count_fits(call *c)
{
    if (c->parameter_count == 0) {
        return c->argument_count == 1 && c->arguments[0].raw == NULL;
    }
    if (c->is_variadic && c->argument_count + 1 == c->parameter_count) {
        c->arguments[c->argument_count++] = (argument){0};
    }
    return c->argument_count == c->parameter_count;
}

static kn_token *copy_tokens(kn_trial *trial, const kn_token *from)
{
    token_list list;
    list_init(&list);
    for (; from != NULL; from = from->next) {
        list_add(&list, kn_trial_copy(trial, from));
    }
    return list.first;
}

// NOLINTNEXTLINE(misc-no-recursion): an argument is expanded by itself; DEPTH_MAX bounds it
static const kn_token *expanded_argument(call *c, size_t index)
{
    argument *arg = &c->arguments[index];
    if (!arg->is_expanded) {
        arg->is_expanded = true;
        arg->expanded = kn_trial_expand(c->trial, copy_tokens(c->trial, arg->raw), c->depth + 1);
    }
    return arg->expanded;
}

/* --- replacing -------------------------------------------------------------------------------- */

/* Adds copies of an argument's tokens, which begin as the parameter in the definition does. */
static void add_argument(call *c, token_list *out, const kn_token *from, const kn_token *parameter)
{
    for (const kn_token *token = from; token != NULL; token = token->next) {
        kn_token *copy = kn_trial_copy(c->trial, token);
        if (copy != NULL && token == from) {
            copy->space = parameter->space;
        }
        list_add(out, copy);
    }
}

static void add_none(call *c, token_list *out, const kn_token *parameter)
{
    kn_token *none = kn_trial_copy(c->trial, parameter);
    if (none != NULL) {
        none->kind = KN_TOKEN_NONE;
        none->text = kn_span_of("", 0);
    }
    list_add(out, none);
}

static void add_string(call *c, token_list *out, const kn_token *hash, size_t parameter)
{
    kn_token *string = kn_trial_copy(c->trial, hash);
    if (string != NULL) {
        string->kind = KN_TOKEN_STRING;
        string->text = kn_trial_spell(c->trial, c->arguments[parameter].raw, NULL, true);
    }
    list_add(out, string);
}

/* GNU's ", ## __VA_ARGS__", which takes the comma away: standard compilers differ. */
static bool is_swallowed_comma(const call *c, const kn_token *paste, const kn_token *before)
{
    return paste->pastes && c->is_variadic && kn_token_is(before, KN_TOKEN_MARK, ",") &&
           paste->next != NULL && find_parameter(c, paste->next) == c->parameter_count - 1;
}

/* A parameter: next to ## as it was given, else expanded. */
// NOLINTNEXTLINE(misc-no-recursion): through expanded_argument
static void add_parameter(call *c, token_list *out, const kn_token *at, size_t index, bool pasted)
{
    const kn_token *tokens = pasted ? c->arguments[index].raw : expanded_argument(c, index);
    if (tokens == NULL) {
        add_none(c, out, at);
    }
    add_argument(c, out, tokens, at);
}

/* The definition with its arguments put in; pastes are still to be done. */
// NOLINTNEXTLINE(misc-no-recursion): through expanded_argument
static kn_token *put_arguments_in(call *c)
{
    token_list out;
    list_init(&out);
    const kn_token *before = NULL;
    for (const kn_token *at = c->body; at != NULL && kn_trial_going(c->trial); at = at->next) {
        const bool is_hash = c->is_function && at->kind == KN_TOKEN_HASH;
        const size_t index = find_parameter(c, is_hash ? at->next : at);
        if (is_swallowed_comma(c, at, before)) {
            return kn_trial_doubt(c->trial, kn_span_of_text(NULL), "a macro has , ## in it");
        }
        if (is_hash && index == no_parameter) {
            c->trial->is_void = true; /* # must be before a parameter */
        } else if (is_hash) {
            add_string(c, &out, at, index);
            at = at->next;
        } else if (index == no_parameter) {
            list_add(&out, kn_trial_copy(c->trial, at));
        } else {
            const bool pasted =
                (before != NULL && before->pastes) || (at->next != NULL && at->next->pastes);
            add_parameter(c, &out, at, index, pasted);
        }
        before = at;
    }
    return out.first;
}

static bool is_word_or_number(const kn_token *token)
{
    return token->kind == KN_TOKEN_WORD || token->kind == KN_TOKEN_NUMBER;
}

/* Makes one token of two, the first of which keeps its place. */
static void paste_tokens(kn_trial *trial, kn_token *left, const kn_token *right)
{
    if (right->kind == KN_TOKEN_NONE) {
        return;
    }
    if (left->kind == KN_TOKEN_NONE) {
        left->kind = right->kind;
        left->text = right->text;
        left->hidden = right->hidden;
        return;
    }
    const bool split = left->kind == KN_TOKEN_WORD && right->kind == KN_TOKEN_NUMBER &&
                       memchr(right->text.data, '.', right->text.length) != NULL;
    const bool dotted = left->kind == KN_TOKEN_NUMBER && kn_token_is(right, KN_TOKEN_MARK, ".");
    if (split || (!dotted && (!is_word_or_number(left) || !is_word_or_number(right)))) {
        (void)kn_trial_doubt(trial, kn_span_of_text(NULL), "a ## does not make one token");
        return;
    }
    char *text = kn_trial_take(trial, left->text.length + right->text.length);
    if (text != NULL) {
        memcpy(text, left->text.data, left->text.length);
        memcpy(text + left->text.length, right->text.data, right->text.length);
        left->text = kn_span_of(text, left->text.length + right->text.length);
        left->hidden = intersect_hidden(trial, left->hidden, right->hidden);
    }
}

static void paste_all(kn_trial *trial, kn_token *first)
{
    for (kn_token *at = first; at != NULL && kn_trial_going(trial); at = at->next) {
        while (at->next != NULL && at->next->pastes && at->next->next != NULL) {
            paste_tokens(trial, at, at->next->next);
            at->next = at->next->next->next;
        }
    }
}

/* Takes out what is empty. A blank that was before it may now be before what follows. */
static kn_token *drop_none(kn_token *first, kn_token_space *out_left)
{
    token_list out;
    kn_token_space left = KN_SPACE_NO;
    list_init(&out);
    for (kn_token *at = first, *next; at != NULL; at = next) {
        next = at->next;
        if (at->kind == KN_TOKEN_NONE) {
            left = left == KN_SPACE_NO && at->space == KN_SPACE_NO ? KN_SPACE_NO : KN_SPACE_MAYBE;
            continue;
        }
        if (left != KN_SPACE_NO && at->space == KN_SPACE_NO) {
            at->space = KN_SPACE_MAYBE;
        }
        left = KN_SPACE_NO;
        list_add(&out, at);
    }
    *out_left = left;
    return out.first;
}

/* Puts the replacement of `name` before the rest of the tokens. */
static kn_token *join_replaced(kn_trial *trial, const kn_token *name, kn_token *replaced,
                               const kn_hidden *hidden, kn_token *rest)
{
    kn_token_space left = KN_SPACE_NO;
    replaced = drop_none(replaced, &left);
    kn_token *last = NULL;
    for (kn_token *token = replaced; token != NULL; token = token->next) {
        token->hidden = unite_hidden(trial, token->hidden, hidden);
        token->pastes = false;
        last = token;
    }
    if (last == NULL) {
        left = name->space != KN_SPACE_NO ? KN_SPACE_MAYBE : left;
    } else {
        replaced->space = name->space == KN_SPACE_NO && replaced->space == KN_SPACE_NO
                              ? KN_SPACE_NO
                              : KN_SPACE_MAYBE;
        last->next = rest;
    }
    if (left != KN_SPACE_NO && rest != NULL && rest->space == KN_SPACE_NO) {
        rest->space = KN_SPACE_MAYBE;
    }
    return last != NULL ? replaced : rest;
}

/* Replaces one macro, whose name is before `*rest`; false: it is a function that is not called. */
// NOLINTNEXTLINE(misc-no-recursion): through expanded_argument
static bool replace_macro(call *c, const kn_token *name, const kn_macro *macro, kn_token **rest)
{
    kn_trial *trial = c->trial;
    const kn_hidden *hidden = name->hidden;
    if (c->is_function) {
        if (!kn_token_is(*rest, KN_TOKEN_MARK, "(")) {
            return false;
        }
        kn_token *close = read_arguments(c, (*rest)->next);
        if (close == NULL || !count_fits(c)) {
            trial->is_void = true;
            return true;
        }
        hidden = intersect_hidden(trial, hidden, close->hidden);
        *rest = close->next;
    }
    kn_token *replaced = put_arguments_in(c);
    paste_all(trial, replaced);
    if (kn_trial_going(trial)) {
        *rest = join_replaced(trial, name, replaced, hide_macro(trial, hidden, macro), *rest);
    }
    return true;
}

// NOLINTNEXTLINE(misc-no-recursion): through expanded_argument
kn_token *kn_trial_expand(kn_trial *trial, kn_token *tokens, unsigned depth)
{
    token_list out;
    list_init(&out);
    if (depth > DEPTH_MAX) {
        return kn_trial_doubt(trial, kn_span_of_text(NULL), "macros are nested too deep");
    }
    call *c = kn_trial_take(trial, sizeof *c);
    while (tokens != NULL && kn_trial_going(trial)) {
        kn_token *at = tokens;
        const kn_macro *macro = NULL;
        kn_span rest;
        tokens = at->next;
        if (++trial->steps > STEPS_MAX) {
            return kn_trial_doubt(trial, kn_span_of_text(NULL), "its expansion is too long");
        }
        const bool is_macro = at->kind == KN_TOKEN_WORD &&
                              kn_trial_body(trial, at->text, &macro, &rest) &&
                              !is_hidden(at->hidden, macro);
        if (!is_macro) {
            list_add(&out, at);
            continue;
        }
        *c = (call){.trial = trial, .depth = depth};
        read_macro_definition(c, at->text, rest);
        if (kn_trial_going(trial) && !replace_macro(c, at, macro, &tokens)) {
            list_add(&out, at);
        }
    }
    *out.end = NULL;
    return out.first;
}
