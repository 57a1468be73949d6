/* Type names of OpenCL C, CUDA and C. */
#include "kernel/kernel_params.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include <kiln/unstable/reflect.h>

#include "kernel/kernel_data.h"

/* Width in bytes and kind of the scalar types that mean the same everywhere. */
typedef struct scalar_type {
    const char *name;
    size_t size;
    bool is_float;
} scalar_type;

static const scalar_type scalars[] = {
    {"half", 2, true},      {"float", 4, true},    {"double", 8, true},    {"char", 1, false},
    {"uchar", 1, false},    {"short", 2, false},   {"ushort", 2, false},   {"int", 4, false},
    {"uint", 4, false},     {"int8_t", 1, false},  {"uint8_t", 1, false},  {"int16_t", 2, false},
    {"uint16_t", 2, false}, {"int32_t", 4, false}, {"uint32_t", 4, false}, {"int64_t", 8, false},
    {"uint64_t", 8, false},
};

static const scalar_type *find_scalar(const char *word, size_t length)
{
    /* float4 is made of floats; int8_t ends otherwise. */
    while (length > 1 && isdigit((unsigned char)word[length - 1])) {
        length--;
    }
    for (size_t i = 0; i < sizeof(scalars) / sizeof(scalars[0]); i++) {
        if (strlen(scalars[i].name) == length && memcmp(scalars[i].name, word, length) == 0) {
            return &scalars[i];
        }
    }
    return NULL;
}

bool kernel_params_type_fits(const char *declared, data_type type)
{
    const scalar_type *found = NULL;
    while (*declared != '\0') {
        size_t length = 0;
        while (isalnum((unsigned char)declared[length]) || declared[length] == '_') {
            length++;
        }
        if (length == 0) {
            declared++;
            continue;
        }
        const scalar_type *scalar = find_scalar(declared, length);
        found = scalar != NULL ? scalar : found; /* "unsigned char": the last word has the width */
        if (length == 4 && memcmp(declared, "long", 4) == 0) {
            return true; /* 4 or 8 bytes, who knows */
        }
        declared += length;
    }
    if (found == NULL) {
        return true;
    }
    /* Halves travel as 16-bit integers where a compiler has no type for them. */
    bool half = found->size == 2 && data_type_size(type) == 2;
    return half ||
           (found->size == data_type_size(type) && found->is_float == data_type_is_float(type));
}

static kiln_arg_kind kind_of(const kernel_arg *arg)
{
    if (kernel_is_buffer(arg)) {
        return KILN_ARG_BUFFER;
    }
    return arg->access == KERNEL_LOCAL ? KILN_ARG_LOCAL : KILN_ARG_VALUE;
}

/* How an argument of such a kind is given. */
static const char *form_of(kiln_arg_kind kind)
{
    return kind == KILN_ARG_BUFFER  ? "as --arg in:f32:1024 or out:f32:1024"
           : kind == KILN_ARG_LOCAL ? "as --arg local:f32:256"
                                    : "as --arg value:i32=1024";
}

/* The first type that fits what a kernel declares. */
static void suggest_arg_type(const char *declared, char *text, size_t size)
{
    static const data_type types[] = {DATA_F32, DATA_I32, DATA_F64, DATA_I64,
                                      DATA_F16, DATA_I16, DATA_I8};
    const char *nearest = NULL;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]) && nearest == NULL; i++) {
        nearest = kernel_params_type_fits(declared, types[i]) ? data_type_name(types[i]) : NULL;
    }
    text[0] = '\0';
    if (nearest != NULL) {
        (void)snprintf(text, size, "give it as %s", nearest);
    }
}

static kiln_status check_one(const kiln_param *param, const kernel_arg *arg, size_t index,
                             kiln_diag *diag)
{
    static const char *const kinds[] = {"?", "a buffer", "a value", "work-group memory"};
    char what[160];
    (void)snprintf(what, sizeof(what), "argument %zu (%.64s)", index,
                   param->name[0] != '\0' ? param->name : arg->name);
    kiln_arg_kind kind = kind_of(arg);
    if (param->kind != KILN_ARG_UNKNOWN && param->kind != kind) {
        return kiln_diag_set(diag, KILN_E_INVALID, form_of(param->kind), what,
                             "is %s, the kernel takes %s", kinds[kind], kinds[param->kind]);
    }
    if (!kernel_params_type_fits(param->type, arg->type)) {
        char fix[32];
        suggest_arg_type(param->type, fix, sizeof(fix));
        return kiln_diag_set(diag, KILN_E_INVALID, fix, what, "is %s, the kernel takes %s",
                             data_type_name(arg->type), param->type);
    }
    return KILN_OK;
}

/* "float* a"; what the backend does not know of it is left out. */
static void describe_param(const kiln_param *param, size_t index, char *text, size_t size)
{
    const char *type = param->type[0] != '\0' ? param->type : "argument";
    if (param->name[0] != '\0') {
        (void)snprintf(text, size, "%s %s", type, param->name);
    } else {
        (void)snprintf(text, size, "%s #%zu", type, index);
    }
}

/* With what the kernel takes, and how the first one that is missing could be given. */
static kiln_status refuse_count(const kiln_param *const *params, size_t count, const char *entry,
                                const cli_kernel *kernel, kiln_diag *diag)
{
    char list[448] = "";
    for (size_t i = 0; i < count; i++) {
        char one[160];
        const size_t used = strlen(list);
        describe_param(params[i], i, one, sizeof(one));
        (void)snprintf(list + used, sizeof(list) - used, "%s%s", i > 0 ? ", " : "", one);
    }
    char fix[160] = "take the last ones away";
    if (kernel->arg_count < count) {
        const kiln_param *next = params[kernel->arg_count];
        (void)snprintf(fix, sizeof(fix), "the next is %.60s: %s", next->name, form_of(next->kind));
    }
    return kiln_diag_set(diag, KILN_E_INVALID, fix, entry, "takes %zu %s, %zu %s given: %s", count,
                         count == 1 ? "argument" : "arguments", kernel->arg_count,
                         kernel->arg_count == 1 ? "is" : "are", list);
}

kiln_status kernel_params_check(kiln_program *program, const char *entry, const cli_kernel *kernel,
                                kiln_diag *diag)
{
    const kiln_param *const *params = NULL;
    size_t count = 0;
    kiln_status status = kiln_program_get_params(program, entry, &params, &count, diag);
    if (status == KILN_MISS) {
        diag->status =
            KILN_E_INVALID; /* asking for a kernel that is not there is the user's error */
        return KILN_E_INVALID;
    }
    if (status != KILN_OK || (count == 0 && kiln_program_entry_count(program) == 0)) {
        return status;
    }
    if (count == 0 && kernel->arg_count > 0) {
        return KILN_OK; /* the backend cannot tell; the launch will */
    }
    if (count != kernel->arg_count) {
        return refuse_count(params, count, entry, kernel, diag);
    }
    for (size_t i = 0; i < count && status == KILN_OK; i++) {
        status = check_one(params[i], &kernel->args[i], i, diag);
    }
    return status;
}
