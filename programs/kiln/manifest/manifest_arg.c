/* One element of a kernel's "args". */
#include <string.h>

#include "manifest/manifest_reader.h"

static kiln_status read_access(const cli_reader *reader, const json_node *object,
                               kernel_access *out_access)
{
    static const char *const names[] = {"value", "in", "out", "inout", "local"};
    json_node kind = reader_get(object, "kind");
    const char *text = NULL;
    kiln_status status = reader_text(reader, &kind, &text);
    if (status != KILN_OK) {
        return status;
    }
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(names[i], text) == 0) {
            *out_access = (kernel_access)i;
            return KILN_OK;
        }
    }
    return reader_refuse(reader, &kind, NULL, "must be value, in, out, inout or local");
}

static kiln_status read_arg_type(const cli_reader *reader, const json_node *object,
                                 data_type *out_type)
{
    json_node type = reader_get(object, "type");
    const char *text = NULL;
    kiln_status status = reader_text(reader, &type, &text);
    if (status == KILN_OK && !data_type_parse(text, strlen(text), out_type)) {
        status = reader_refuse(reader, &type, NULL,
                               "must be f16 f32 f64 i8 i16 i32 i64 u8 u16 u32 or u64");
    }
    return status;
}

static kiln_status read_arg_shape(const cli_reader *reader, const json_node *object,
                                  kernel_arg *arg)
{
    json_node shape = reader_get(object, "shape");
    if (shape.json == NULL && arg->init.kind == DATA_FILE) {
        arg->shape_from_file = true;
        return KILN_OK;
    }
    size_t rank = json_array_size(shape.json);
    if (!json_is_array(shape.json) || rank == 0 || rank > NPY_MAX_RANK) {
        return reader_refuse(reader, &shape, NULL,
                             shape.json == NULL ? "is missing"
                                                : "must be an array of 1 to 8 whole numbers");
    }
    for (size_t i = 0; i < rank; i++) {
        json_node extent = reader_at(&shape, i);
        kiln_status status = reader_count(reader, &extent, 1, &arg->shape[i]);
        if (status != KILN_OK) {
            return status;
        }
    }
    arg->rank = rank;
    if (!npy_count(arg->shape, rank, data_type_size(arg->type), &arg->count)) {
        return reader_refuse(reader, &shape, NULL, "is larger than memory");
    }
    return KILN_OK;
}

/* [a, b] */
static kiln_status read_two(const cli_reader *reader, const json_node *pair, data_init *init)
{
    if (!json_is_array(pair->json) || json_array_size(pair->json) != 2) {
        return reader_refuse(reader, pair, NULL, "must be an array of two numbers");
    }
    json_node first = reader_at(pair, 0);
    json_node second = reader_at(pair, 1);
    kiln_status status = reader_number(reader, &first, &init->a);
    if (status == KILN_OK) {
        status = reader_number(reader, &second, &init->b);
    }
    return status;
}

static kiln_status read_random(const cli_reader *reader, const json_node *object, data_init *init)
{
    json_node bounds = reader_get(object, "random");
    json_node seed = reader_get(object, "seed");
    init->kind = DATA_RANDOM;
    kiln_status status = read_two(reader, &bounds, init);
    if (status == KILN_OK && init->a.real > init->b.real) {
        status = reader_refuse(reader, &bounds, NULL, "must not end before it begins");
    }
    if (status == KILN_OK && seed.json != NULL) {
        status = reader_count(reader, &seed, 0, &init->seed);
    }
    return status;
}

static kiln_status read_init(const cli_reader *reader, const json_node *init_node, data_init *init)
{
    static const char *const keys[] = {"random", "seed", "fill", "range", "file", NULL};
    kiln_status status = reader_check_object(reader, init_node, keys);
    if (status != KILN_OK) {
        return status;
    }
    json_node random = reader_get(init_node, "random");
    json_node fill = reader_get(init_node, "fill");
    json_node range = reader_get(init_node, "range");
    json_node file = reader_get(init_node, "file");
    json_node seed = reader_get(init_node, "seed");
    int given =
        (random.json != NULL) + (fill.json != NULL) + (range.json != NULL) + (file.json != NULL);
    if (given != 1) {
        return reader_refuse(reader, init_node, NULL, "must have one of random, fill, range, file");
    }
    if (random.json != NULL) {
        return read_random(reader, init_node, init);
    }
    if (seed.json != NULL) {
        return reader_refuse(reader, &seed, NULL, "goes with random only");
    }
    if (fill.json != NULL) {
        init->kind = DATA_FILL;
        return reader_number(reader, &fill, &init->a);
    }
    if (range.json != NULL) {
        init->kind = DATA_RANGE;
        return read_two(reader, &range, init);
    }
    init->kind = DATA_FILE;
    return reader_path(reader, &file, &init->file);
}

static kiln_status read_value(const cli_reader *reader, const json_node *object, kernel_arg *arg)
{
    json_node value = reader_get(object, "value");
    kiln_status status = reader_number(reader, &value, &arg->value);
    if (status == KILN_OK && !data_fits(arg->type, arg->value)) {
        status =
            reader_refuse(reader, &value, NULL, "does not fit in %s", data_type_name(arg->type));
    }
    arg->count = 1;
    return status;
}

static kiln_status read_local(const cli_reader *reader, const json_node *object, kernel_arg *arg)
{
    json_node count = reader_get(object, "count");
    uint64_t value = 0;
    kiln_status status = reader_count(reader, &count, 1, &value);
    if (status == KILN_OK && value > UINT32_MAX) {
        status = reader_refuse(reader, &count, NULL, "is more than any device has");
    }
    arg->count = (size_t)value;
    return status;
}

static kiln_status read_result(const cli_reader *reader, const json_node *object, kernel_arg *arg)
{
    kiln_status status = KILN_OK;
    json_node expect = reader_get(object, "expect");
    json_node tolerance = reader_get(object, "tolerance");
    if (expect.json != NULL) {
        status = reader_path(reader, &expect, &arg->expect);
    }
    if (status == KILN_OK && tolerance.json != NULL) {
        arg->has_tolerance = true;
        status = reader_tolerance(reader, &tolerance, &arg->tolerance);
    }
    return status;
}

/* Which keys an argument of each kind may have. */
static const char *const *keys_of(kernel_access access)
{
    static const char *const value[] = {"name", "kind", "type", "value", NULL};
    static const char *const in[] = {"name", "kind", "type", "shape", "init", NULL};
    static const char *const out[] = {"name", "kind", "type", "shape", "expect", "tolerance", NULL};
    static const char *const inout[] = {"name", "kind",   "type",      "shape",
                                        "init", "expect", "tolerance", NULL};
    static const char *const local[] = {"name", "kind", "type", "count", NULL};
    static const char *const *const rows[] = {value, in, out, inout, local};
    return rows[access];
}

kiln_status manifest_read_arg(const cli_reader *reader, const json_node *node, kernel_arg *out_arg)
{
    json_node name = reader_get(node, "name");
    json_node init = reader_get(node, "init");
    kernel_access access = KERNEL_VALUE;
    if (!json_is_object(node->json)) {
        return reader_refuse(reader, node, NULL, "must be an object");
    }
    kiln_status status = read_access(reader, node, &access);
    if (status == KILN_OK) {
        out_arg->access = access;
        status = reader_check_object(reader, node, keys_of(access));
    }
    if (status == KILN_OK) {
        status = reader_text(reader, &name, &out_arg->name);
    }
    if (status == KILN_OK) {
        status = read_arg_type(reader, node, &out_arg->type);
    }
    if (status == KILN_OK && init.json != NULL) {
        status = read_init(reader, &init, &out_arg->init);
    }
    if (status != KILN_OK) {
        return status;
    }
    if (access == KERNEL_VALUE) {
        return read_value(reader, node, out_arg);
    }
    if (access == KERNEL_LOCAL) {
        return read_local(reader, node, out_arg);
    }
    status = read_arg_shape(reader, node, out_arg);
    return status == KILN_OK ? read_result(reader, node, out_arg) : status;
}
