/* JSON values with places. Knows nothing of what they mean. */
#include "manifest/manifest_reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/diag.h"
#include "cli/host.h"
#include "cli/opt.h"

json_node reader_get(const json_node *object, const char *key)
{
    return (json_node){json_object_get(object->json, key), where_key(object->path, key)};
}

json_node reader_at(const json_node *array, size_t index)
{
    return (json_node){json_array_get(array->json, index), where_index(array->path, index)};
}

void reader_refuse(cli_reader *reader, const json_node *node, const char *fix, const char *format,
                   ...)
{
    char place[160];
    char why[512];
    char what[256];
    size_t line = 0;
    size_t column = 0;
    va_list args;
    if (reader->status != KILN_OK) {
        return;
    }
    va_start(args, format);
    (void)vsnprintf(why, sizeof(why), format, args);
    va_end(args);
    where_format(&node->path, place, sizeof(place));
    where_find(reader->text, &node->path, &line, &column);
    (void)snprintf(what, sizeof(what), "%.160s:%zu:%zu", reader->path, line, column);
    reader->status = kiln_diag_set(reader->diag, KILN_E_INVALID, fix, what, "%s%s%s", place,
                                   place[0] != '\0' ? ": " : "", why);
}

/* The value must be `what`, and is something else or missing. */
static void refuse_type(cli_reader *reader, const json_node *node, const char *what)
{
    if (node->json == NULL) {
        reader_refuse(reader, node, NULL, "is missing");
    } else {
        reader_refuse(reader, node, NULL, "must be %s", what);
    }
}

void *reader_keep(cli_reader *reader, void *memory)
{
    if (memory == NULL && reader->status == KILN_OK) {
        reader->status = diag_no_memory(reader->diag, reader->path);
    }
    return memory;
}

const char *reader_text(cli_reader *reader, const json_node *node)
{
    if (!json_is_string(node->json) || json_string_length(node->json) == 0) {
        refuse_type(reader, node, "text, and not empty");
        return NULL;
    }
    return reader_keep(reader, pool_text(reader->pool, json_string_value(node->json),
                                         json_string_length(node->json)));
}

const char *reader_path(cli_reader *reader, const json_node *node)
{
    const char *text = reader_text(reader, node);
    return text != NULL ? reader_keep(reader, host_join(reader->pool, reader->dir, text)) : NULL;
}

data_number reader_number(cli_reader *reader, const json_node *node)
{
    if (json_is_integer(node->json)) {
        return data_of_integer(json_integer_value(node->json));
    }
    if (!json_is_real(node->json)) {
        refuse_type(reader, node, "a number");
        return data_of_integer(0);
    }
    return data_of_real(json_real_value(node->json));
}

uint64_t reader_count(cli_reader *reader, const json_node *node, uint64_t least)
{
    json_int_t value = json_integer_value(node->json);
    if (!json_is_integer(node->json) || value < 0 || (uint64_t)value < least) {
        refuse_type(reader, node,
                    least == 0 ? "a whole number, at least 0" : "a whole number, at least 1");
        return 0;
    }
    return (uint64_t)value;
}

const char *const *reader_texts(cli_reader *reader, const json_node *node, bool paths,
                                size_t *out_count)
{
    const size_t count = json_array_size(node->json);
    if (node->json != NULL && !json_is_array(node->json)) {
        reader_refuse(reader, node, NULL, "must be an array of text");
    }
    const char **texts = reader_keep(reader, pool_array(reader->pool, count + 1, sizeof(*texts)));
    for (size_t i = 0; i < count && texts != NULL; i++) {
        json_node item = reader_at(node, i);
        texts[i] = paths ? reader_path(reader, &item) : reader_text(reader, &item);
    }
    *out_count = count;
    return texts;
}

size_t reader_extents(cli_reader *reader, const json_node *node, size_t max, uint64_t *extents)
{
    char what[64];
    const size_t count = json_array_size(node->json);
    if (count == 0 || count > max) {
        (void)snprintf(what, sizeof(what), "an array of 1 to %zu whole numbers", max);
        refuse_type(reader, node, what);
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        json_node extent = reader_at(node, i);
        extents[i] = reader_count(reader, &extent, 1);
    }
    return reader->status == KILN_OK ? count : 0;
}

static double read_bound(cli_reader *reader, const json_node *object, const char *key)
{
    json_node bound = reader_get(object, key);
    const double value = bound.json != NULL ? reader_number(reader, &bound).real : 0.0;
    if (value < 0) {
        reader_refuse(reader, &bound, NULL, "must not be negative");
    }
    return value;
}

data_tolerance reader_tolerance(cli_reader *reader, const json_node *node)
{
    static const char *const keys[] = {"absolute", "relative", NULL};
    data_tolerance tolerance = {0.0, 0.0};
    if (node->json != NULL && reader_check_object(reader, node, keys)) {
        tolerance.absolute = read_bound(reader, node, "absolute");
        tolerance.relative = read_bound(reader, node, "relative");
    }
    return tolerance;
}

bool reader_check_object(cli_reader *reader, const json_node *node, const char *const *keys)
{
    const char *key = NULL;
    json_t *value = NULL;
    if (!json_is_object(node->json)) {
        refuse_type(reader, node, "an object");
        return false;
    }
    json_object_foreach(node->json, key, value)
    {
        size_t i = 0;
        while (keys[i] != NULL && strcmp(keys[i], key) != 0) {
            i++;
        }
        if (keys[i] == NULL) {
            char fix[64] = "";
            const char *nearest = opt_nearest(keys, key);
            json_node place = reader_get(node, key);
            if (nearest != NULL) {
                (void)snprintf(fix, sizeof(fix), "did you mean \"%s\"?", nearest);
            }
            reader_refuse(reader, &place, fix, "is not a key that a manifest has here");
        }
    }
    return reader->status == KILN_OK;
}
