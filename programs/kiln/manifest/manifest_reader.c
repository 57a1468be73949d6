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

kiln_status reader_refuse(const cli_reader *reader, const json_node *node, const char *fix,
                          const char *format, ...)
{
    char place[160];
    char why[512];
    char what[256];
    size_t line = 0;
    size_t column = 0;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(why, sizeof(why), format, args);
    va_end(args);
    where_format(&node->path, place, sizeof(place));
    where_find(reader->text, &node->path, &line, &column);
    (void)snprintf(what, sizeof(what), "%.160s:%zu:%zu", reader->path, line, column);
    return kiln_diag_set(reader->diag, KILN_E_INVALID, fix, what, "%s%s%s", place,
                         place[0] != '\0' ? ": " : "", why);
}

kiln_status reader_no_memory(const cli_reader *reader)
{
    return diag_no_memory(reader->diag, reader->path);
}

kiln_status reader_text(const cli_reader *reader, const json_node *node, const char **out_text)
{
    if (node->json == NULL) {
        return reader_refuse(reader, node, NULL, "is missing");
    }
    if (!json_is_string(node->json) || json_string_length(node->json) == 0) {
        return reader_refuse(reader, node, NULL, "must be text, and not empty");
    }
    *out_text =
        pool_text(reader->pool, json_string_value(node->json), json_string_length(node->json));
    return *out_text != NULL ? KILN_OK : reader_no_memory(reader);
}

kiln_status reader_path(const cli_reader *reader, const json_node *node, const char **out_path)
{
    const char *text = NULL;
    kiln_status status = reader_text(reader, node, &text);
    if (status != KILN_OK) {
        return status;
    }
    *out_path = host_join(reader->pool, reader->dir, text);
    return *out_path != NULL ? KILN_OK : reader_no_memory(reader);
}

kiln_status reader_number(const cli_reader *reader, const json_node *node, data_number *out_number)
{
    if (json_is_integer(node->json)) {
        *out_number = data_of_integer(json_integer_value(node->json));
        return KILN_OK;
    }
    if (json_is_real(node->json)) {
        *out_number = data_of_real(json_real_value(node->json));
        return KILN_OK;
    }
    return reader_refuse(reader, node, NULL,
                         node->json == NULL ? "is missing" : "must be a number");
}

kiln_status reader_count(const cli_reader *reader, const json_node *node, uint64_t least,
                         uint64_t *out_count)
{
    if (node->json == NULL) {
        return reader_refuse(reader, node, NULL, "is missing");
    }
    json_int_t value = json_integer_value(node->json);
    if (!json_is_integer(node->json) || value < 0 || (uint64_t)value < least) {
        return reader_refuse(reader, node, NULL, "must be a whole number, at least %d", (int)least);
    }
    *out_count = (uint64_t)value;
    return KILN_OK;
}

kiln_status reader_texts(const cli_reader *reader, const json_node *node, bool paths,
                         const char *const **out_texts, size_t *out_count)
{
    size_t count = json_array_size(node->json);
    if (node->json == NULL) {
        return KILN_OK;
    }
    if (!json_is_array(node->json)) {
        return reader_refuse(reader, node, NULL, "must be an array of text");
    }
    const char **texts = pool_array(reader->pool, count + 1, sizeof(*texts));
    if (texts == NULL) {
        return reader_no_memory(reader);
    }
    for (size_t i = 0; i < count; i++) {
        json_node item = reader_at(node, i);
        kiln_status status =
            paths ? reader_path(reader, &item, &texts[i]) : reader_text(reader, &item, &texts[i]);
        if (status != KILN_OK) {
            return status;
        }
    }
    *out_texts = texts;
    *out_count = count;
    return KILN_OK;
}

static kiln_status read_bound(const cli_reader *reader, const json_node *object, const char *key,
                              double *out_bound)
{
    data_number number = {true, 0, 0.0};
    json_node bound = reader_get(object, key);
    if (bound.json == NULL) {
        return KILN_OK; /* absent: 0 */
    }
    kiln_status status = reader_number(reader, &bound, &number);
    if (status == KILN_OK && number.real < 0) {
        status = reader_refuse(reader, &bound, NULL, "must not be negative");
    }
    *out_bound = number.real;
    return status;
}

kiln_status reader_tolerance(const cli_reader *reader, const json_node *node,
                             data_tolerance *out_tolerance)
{
    static const char *const keys[] = {"absolute", "relative", NULL};
    kiln_status status = reader_check_object(reader, node, keys);
    if (status == KILN_OK) {
        status = read_bound(reader, node, "absolute", &out_tolerance->absolute);
    }
    if (status == KILN_OK) {
        status = read_bound(reader, node, "relative", &out_tolerance->relative);
    }
    return status;
}

kiln_status reader_check_object(const cli_reader *reader, const json_node *node,
                                const char *const *keys)
{
    const char *key = NULL;
    json_t *value = NULL;
    if (!json_is_object(node->json)) {
        return reader_refuse(reader, node, NULL,
                             node->json == NULL ? "is missing" : "must be an object");
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
            return reader_refuse(reader, &place, fix, "is not a key that a manifest has here");
        }
    }
    return KILN_OK;
}
