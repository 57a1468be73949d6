/* One element of a kernel's "args", and amounts that follow from arguments. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "manifest/manifest_reader.h"

static void read_init(cli_reader *reader, const json_node *node, data_init *init)
{
    static const char *const keys[] = {"random", "seed", "fill", NULL};
    json_node random = reader_get(node, "random");
    json_node fill = reader_get(node, "fill");
    json_node seed = reader_get(node, "seed");
    if (!reader_check_object(reader, node, keys)) {
        return;
    }
    if ((random.json != NULL) == (fill.json != NULL)) {
        reader_refuse(reader, node, NULL, "must have one of random, fill");
    } else if (random.json == NULL && seed.json != NULL) {
        reader_refuse(reader, &seed, NULL, "goes with random only");
    } else if (random.json == NULL) {
        init->a = reader_number(reader, &fill);
    } else if (json_array_size(random.json) != 2) {
        reader_refuse(reader, &random, NULL, "must be an array of two numbers");
    } else {
        json_node from = reader_at(&random, 0);
        json_node to = reader_at(&random, 1);
        init->kind = DATA_RANDOM;
        init->a = reader_number(reader, &from);
        init->b = reader_number(reader, &to);
        if (init->a.real > init->b.real) {
            reader_refuse(reader, &random, NULL, "must not end before it begins");
        }
        init->seed = seed.json != NULL ? reader_count(reader, &seed, 0) : init->seed;
    }
}

static void read_value(cli_reader *reader, const json_node *object, kernel_arg *arg)
{
    json_node value = reader_get(object, "value");
    arg->count = 1;
    arg->value = reader_number(reader, &value);
    if (!data_fits(arg->type, arg->value)) {
        reader_refuse(reader, &value, NULL, "does not fit in %s", data_type_name(arg->type));
    }
}

static void read_local(cli_reader *reader, const json_node *object, kernel_arg *arg)
{
    json_node count = reader_get(object, "count");
    arg->count = (size_t)reader_count(reader, &count, 1);
    if (arg->count > UINT32_MAX) {
        reader_refuse(reader, &count, NULL, "is more than any device has");
    }
}

static void read_buffer(cli_reader *reader, const json_node *object, kernel_arg *arg)
{
    json_node shape = reader_get(object, "shape");
    json_node tolerance = reader_get(object, "tolerance");
    json_node init = reader_get(object, "init");
    if (init.json != NULL) {
        read_init(reader, &init, &arg->init);
    }
    arg->rank = reader_extents(reader, &shape, DATA_MAX_RANK, arg->shape);
    if (arg->rank > 0 && !data_count(arg->shape, arg->rank, arg->type, &arg->count)) {
        reader_refuse(reader, &shape, NULL, "is larger than memory");
    }
    arg->has_tolerance = tolerance.json != NULL;
    arg->tolerance = reader_tolerance(reader, &tolerance);
}

void manifest_read_arg(cli_reader *reader, const json_node *node, kernel_arg *out_arg)
{
    /* By kind: what an argument may have. */
    static const char *const keys[KERNEL_ACCESS_COUNT][8] = {
        [KERNEL_VALUE] = {"name", "kind", "type", "value", NULL},
        [KERNEL_IN] = {"name", "kind", "type", "shape", "init", NULL},
        [KERNEL_OUT] = {"name", "kind", "type", "shape", "tolerance", NULL},
        [KERNEL_INOUT] = {"name", "kind", "type", "shape", "init", "tolerance", NULL},
        [KERNEL_LOCAL] = {"name", "kind", "type", "count", NULL}};
    json_node name = reader_get(node, "name");
    json_node kind = reader_get(node, "kind");
    json_node type = reader_get(node, "type");
    if (!json_is_object(node->json)) {
        reader_refuse(reader, node, NULL, "must be an object");
        return;
    }
    const char *text = reader_text(reader, &kind);
    out_arg->access = text != NULL ? kernel_access_parse(text) : KERNEL_ACCESS_COUNT;
    if (out_arg->access == KERNEL_ACCESS_COUNT) {
        reader_refuse(reader, &kind, NULL, "must be value, in, out, inout or local");
    } else if (reader_check_object(reader, node, keys[out_arg->access])) {
        out_arg->name = reader_text(reader, &name);
        text = reader_text(reader, &type);
        if (text != NULL && !data_type_parse(text, &out_arg->type)) {
            reader_refuse(reader, &type, NULL,
                          "must be f16 f32 f64 i8 i16 i32 i64 u8 u16 u32 or u64");
        }
    }
    if (reader->status != KILN_OK) {
        return;
    }
    if (out_arg->access == KERNEL_VALUE) {
        read_value(reader, node, out_arg);
    } else if (out_arg->access == KERNEL_LOCAL) {
        read_local(reader, node, out_arg);
    } else {
        read_buffer(reader, node, out_arg);
    }
}

/* --- amounts ---------------------------------------------------------------------------------- */

/* The name of a value is its value, that of a buffer its number of elements, and buffer[i] its i-th
 * extent. NaN: there is no such argument or extent. */
static double read_name(const cli_kernel *kernel, const char **at)
{
    const char *word = *at;
    while (isalnum((unsigned char)**at) || **at == '_') {
        (*at)++;
    }
    const size_t length = (size_t)(*at - word);
    for (size_t i = 0; i < kernel->arg_count && length > 0; i++) {
        const kernel_arg *arg = &kernel->args[i];
        if (strlen(arg->name) != length || memcmp(arg->name, word, length) != 0) {
            continue;
        }
        if (**at != '[') {
            return arg->access == KERNEL_VALUE ? arg->value.real : (double)arg->count;
        }
        const size_t extent = (size_t)(*at)[1] - '0';
        if (extent >= arg->rank || (*at)[2] != ']') {
            return NAN;
        }
        *at += 3;
        return (double)arg->shape[extent];
    }
    return NAN;
}

double manifest_read_amount(cli_reader *reader, const json_node *node, const cli_kernel *kernel)
{
    double product = 1;
    const char *text = NULL;
    if (json_is_number(node->json)) {
        product = json_number_value(node->json);
    } else {
        text = reader_text(reader, node);
    }
    for (const char *at = text; at != NULL && reader->status == KILN_OK;) {
        at += strspn(at, " ");
        const size_t place = (size_t)(at - text) + 1;
        char *end = NULL;
        const double factor =
            isdigit((unsigned char)*at) ? strtod(at, &end) : read_name(kernel, &at);
        at = end != NULL ? end : at;
        at += strspn(at, " ");
        product *= factor;
        if (isnan(factor)) {
            reader_refuse(reader, node, NULL,
                          "character %zu: expected a number, an argument or one of its extents",
                          place);
        } else if (*at != '*' && *at != '\0') {
            reader_refuse(reader, node, NULL, "character %zu: expected \"*\" or the end",
                          (size_t)(at - text) + 1);
        }
        at = *at == '*' ? at + 1 : NULL;
    }
    if (!isfinite(product) || product < 0) {
        reader_refuse(reader, node, NULL, "is negative or not a number");
    }
    return product;
}
