/* The grammar of --arg. Knows nothing of devices. */
#include "kernel/kernel_arg.h"

#include <stdio.h>
#include <string.h>

#include "cli/diag.h"
#include "cli/opt.h"

bool kernel_shape_parse(const char *text, size_t max, uint64_t *extents, size_t *out_rank)
{
    size_t rank = 0;
    while (true) {
        char digits[24];
        size_t length = strspn(text, "0123456789");
        if (length == 0 || length >= sizeof(digits) || rank == max) {
            return false;
        }
        memcpy(digits, text, length);
        digits[length] = '\0';
        if (!opt_parse_count(digits, &extents[rank]) || extents[rank] == 0) {
            return false;
        }
        rank++;
        text += length;
        if (*text == '\0') {
            *out_rank = rank;
            return true;
        }
        if (*text != 'x' && *text != ',') {
            return false;
        }
        text++;
    }
}

bool kernel_arg_parse_file(const char *text, size_t *out_index, const char **out_file)
{
    const char *equals = strchr(text, '=');
    char digits[8];
    uint64_t index = 0;
    if (equals == NULL || equals[1] == '\0' || (size_t)(equals - text) >= sizeof(digits)) {
        return false;
    }
    memcpy(digits, text, (size_t)(equals - text));
    digits[equals - text] = '\0';
    if (!opt_parse_count(digits, &index)) {
        return false;
    }
    *out_index = (size_t)index;
    *out_file = equals + 1;
    return true;
}

/* Splits `text` (which is cut up) at colons into at most `max` fields. */
static size_t split_fields(char *text, char **fields, size_t max)
{
    size_t count = 0;
    while (count < max) {
        fields[count++] = text;
        char *colon = strchr(text, ':');
        if (colon == NULL) {
            return count;
        }
        *colon = '\0';
        text = colon + 1;
    }
    return max + 1; /* too many */
}

/* NULL, or what is wrong. */
static const char *parse_init(char *text, data_init *init)
{
    char *fields[4] = {NULL};
    if (strncmp(text, "file:", 5) == 0 && text[5] != '\0') {
        init->kind = DATA_FILE;
        init->file = text + 5;
        return NULL;
    }
    size_t count = split_fields(text, fields, 4);
    if (strcmp(fields[0], "fill") == 0 && count == 2) {
        return data_parse_number(fields[1], &init->a) ? NULL : "fill needs a number";
    }
    if (strcmp(fields[0], "random") != 0 || (count != 3 && count != 4)) {
        return "initial values are fill:VALUE, random:FROM:TO[:SEED] or file:PATH";
    }
    init->kind = DATA_RANDOM;
    if (!data_parse_number(fields[1], &init->a) || !data_parse_number(fields[2], &init->b) ||
        (count == 4 && !opt_parse_count(fields[3], &init->seed))) {
        return "these are not numbers";
    }
    return init->a.real > init->b.real ? "random ends before it begins" : NULL;
}

/* What comes after the kind: the fields between colons, and the part after '='. NULL, or what is
 * wrong. */
static const char *parse_rest(char **fields, size_t count, char *rest, kernel_arg *arg)
{
    if (count < 2 || !data_type_parse(fields[1], &arg->type)) {
        return "the type must be f16 f32 f64 i8 i16 i32 i64 u8 u16 u32 or u64";
    }
    if (arg->access == KERNEL_VALUE) {
        arg->count = 1;
        if (count != 2 || rest == NULL || !data_parse_number(rest, &arg->value)) {
            return "write value:TYPE=NUMBER";
        }
        return data_fits(arg->type, arg->value) ? NULL : "the number does not fit in the type";
    }
    const size_t most = arg->access == KERNEL_LOCAL ? 1 : DATA_MAX_RANK;
    if (count != 3 || !kernel_shape_parse(fields[2], most, arg->shape, &arg->rank) ||
        !data_count(arg->shape, arg->rank, arg->type, &arg->count)) {
        return "write KIND:TYPE:SHAPE, the shape as 1024 or 32x32";
    }
    if (rest == NULL) {
        return NULL;
    }
    return arg->access == KERNEL_IN || arg->access == KERNEL_INOUT ? parse_init(rest, &arg->init)
                                                                   : "takes no initial values";
}

/* What was probably meant by a type's name in C. NULL if it is unknown. */
static const char *suggest_type(const char *name)
{
    static const char *const names[][2] = {{"float", "f32"}, {"double", "f64"}, {"half", "f16"},
                                           {"int", "i32"},   {"uint", "u32"},   {"long", "i64"},
                                           {"ulong", "u64"}, {"short", "i16"},  {"ushort", "u16"},
                                           {"char", "i8"},   {"uchar", "u8"},   {"float32", "f32"},
                                           {"int32", "i32"}, {"uint32", "u32"}, {"size_t", "u64"}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(names[i][0], name) == 0) {
            return names[i][1];
        }
    }
    return NULL;
}

/* How to write what was meant: `fields` are those between colons, `rest` what comes after '='. */
static void suggest_form(char *const *fields, size_t count, const char *rest, char *text,
                         size_t size)
{
    data_type type;
    const char *meant = count > 1 && count <= 3 ? suggest_type(fields[1]) : NULL;
    if (count == 1 && data_type_parse(fields[0], &type)) {
        (void)snprintf(text, size, "did you mean value:%s=%.40s?", fields[0],
                       rest != NULL ? rest : "NUMBER");
    } else if (meant != NULL) {
        (void)snprintf(text, size, "did you mean %s:%s?", fields[0], meant);
    } else {
        (void)snprintf(text, size,
                       "write in:f32:1024, out:f32:1024 or value:i32=7; kiln run "
                       "--help shows all forms");
    }
}

kiln_status kernel_arg_parse(const char *text, size_t index, cli_pool *pool, kernel_arg *out_arg,
                             kiln_diag *diag)
{
    char *fields[3] = {NULL};
    char *copy = pool_text(pool, text, strlen(text));
    *out_arg = (kernel_arg){.init = {.seed = index + 1}};
    out_arg->name = pool_format(pool, "arg%zu", index);
    if (copy == NULL || out_arg->name == NULL) {
        return diag_no_memory(diag, "--arg");
    }
    char *rest = strchr(copy, '=');
    if (rest != NULL) {
        *rest++ = '\0';
    }
    size_t count = split_fields(copy, fields, 3);
    out_arg->access = kernel_access_parse(fields[0]);
    const char *wrong = out_arg->access == KERNEL_ACCESS_COUNT
                            ? "it begins with value, in, out, inout or local"
                            : parse_rest(fields, count, rest, out_arg);
    if (wrong != NULL) {
        char what[160];
        char fix[160];
        (void)snprintf(what, sizeof(what), "--arg %.140s", text);
        suggest_form(fields, count, rest, fix, sizeof(fix));
        return kiln_diag_set(diag, KILN_E_INVALID, fix, what, "%s", wrong);
    }
    return KILN_OK;
}
