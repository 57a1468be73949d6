/* A parser that evaluates as it goes. */
#include "kernel/expression.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/kernel_data.h"

enum { DEPTH_MAX = 32 };

typedef struct parser {
    const char *text;
    size_t at;
    unsigned depth;
    const cli_kernel *kernel;
    expression_error *error; /* the first one */
    bool failed;
} parser;

static double fail_at(parser *p, size_t at, const char *format, const char *word, size_t length)
{
    if (!p->failed) {
        p->failed = true;
        p->error->at = at;
        (void)snprintf(p->error->why, sizeof(p->error->why), format,
                       (int)(length < 40 ? length : 40), word);
    }
    return 0;
}

static char next_character(parser *p)
{
    while (p->text[p->at] == ' ') {
        p->at++;
    }
    return p->text[p->at];
}

static bool take_character(parser *p, char c)
{
    bool there = next_character(p) == c;
    p->at += there;
    return there;
}

static double read_sum(parser *p);

static double read_number(parser *p)
{
    char *end = NULL;
    double value = strtod(p->text + p->at, &end);
    p->at = (size_t)(end - p->text);
    return value;
}

static double read_extent(parser *p, const kernel_arg *arg, size_t at)
{
    size_t begin = p->at;
    size_t index = 0;
    while (isdigit((unsigned char)next_character(p)) && index < NPY_MAX_RANK) {
        index = index * 10 + (size_t)(p->text[p->at++] - '0');
    }
    if (p->at == begin || !take_character(p, ']')) {
        return fail_at(p, p->at, "expected a dimension and \"]\"%.*s", "", 0);
    }
    if (arg->shape_from_file) {
        return 1;
    }
    if (!kernel_is_buffer(arg) || index >= arg->rank) {
        return fail_at(p, at, "%.*s has no such dimension", arg->name, strlen(arg->name));
    }
    return (double)arg->shape[index];
}

static double read_amount_name(parser *p)
{
    size_t at = p->at;
    while (isalnum((unsigned char)p->text[p->at]) || p->text[p->at] == '_') {
        p->at++;
    }
    const char *word = p->text + at;
    size_t length = p->at - at;
    for (size_t i = 0; i < p->kernel->arg_count; i++) {
        const kernel_arg *arg = &p->kernel->args[i];
        if (strlen(arg->name) != length || memcmp(arg->name, word, length) != 0) {
            continue;
        }
        if (take_character(p, '[')) {
            return read_extent(p, arg, at);
        }
        if (arg->access == KERNEL_VALUE) {
            return arg->value.real;
        }
        return arg->shape_from_file ? 1 : (double)arg->count;
    }
    return fail_at(p, at, "no argument is called \"%.*s\"", word, length);
}

static double read_factor(parser *p)
{
    char c = next_character(p);
    if (c == '(') {
        p->at++;
        if (++p->depth > DEPTH_MAX) {
            return fail_at(p, p->at, "the parentheses are too deep%.*s", "", 0);
        }
        double value = read_sum(p);
        p->depth--;
        return take_character(p, ')') ? value : fail_at(p, p->at, "expected \")\"%.*s", "", 0);
    }
    if (isdigit((unsigned char)c)) {
        return read_number(p);
    }
    if (isalpha((unsigned char)c) || c == '_') {
        return read_amount_name(p);
    }
    return fail_at(p, p->at, "expected a number, an argument or \"(\"%.*s", "", 0);
}

static double read_product(parser *p)
{
    double value = read_factor(p);
    while (!p->failed) {
        if (take_character(p, '*')) {
            value *= read_factor(p);
        } else if (take_character(p, '/')) {
            value /= read_factor(p);
        } else {
            break;
        }
    }
    return value;
}

static double read_sum(parser *p)
{
    double value = read_product(p);
    while (!p->failed) {
        if (take_character(p, '+')) {
            value += read_product(p);
        } else if (take_character(p, '-')) {
            value -= read_product(p);
        } else {
            break;
        }
    }
    return value;
}

bool expression_evaluate(const char *text, const cli_kernel *kernel, double *out_value,
                         expression_error *out_error)
{
    parser p = {text, 0, 0, kernel, out_error, false};
    double value = read_sum(&p);
    if (!p.failed && next_character(&p) != '\0') {
        (void)fail_at(&p, p.at, "expected an operator or the end%.*s", "", 0);
    }
    if (!p.failed && (!isfinite(value) || value < 0)) {
        (void)fail_at(&p, 0, "its value is negative or not a number%.*s", "", 0);
    }
    *out_value = p.failed ? 0 : value;
    return !p.failed;
}
