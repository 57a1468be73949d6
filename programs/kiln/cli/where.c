/* A walk over text that is known to be JSON; on text that is not, it stops at its end. */
#include "cli/where.h"

#include <stdio.h>
#include <string.h>

where_path where_key(where_path path, const char *key)
{
    if (path.count < WHERE_DEPTH) {
        path.steps[path.count++] = (where_step){key, 0};
    }
    return path;
}

where_path where_index(where_path path, size_t index)
{
    if (path.count < WHERE_DEPTH) {
        path.steps[path.count++] = (where_step){NULL, index};
    }
    return path;
}

void where_format(const where_path *path, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < path->count && used < size; i++) {
        const where_step *step = &path->steps[i];
        int length = step->key != NULL
                         ? snprintf(text + used, size - used, "%s%s", i > 0 ? "." : "", step->key)
                         : snprintf(text + used, size - used, "[%zu]", step->index);
        used += length > 0 ? (size_t)length : 0;
    }
}

static const char *skip_line_blanks(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

/* Past a string that begins at `at`. */
static const char *skip_string(const char *at)
{
    at++;
    while (*at != '\0' && *at != '"') {
        at += *at == '\\' && at[1] != '\0' ? 2 : 1;
    }
    return *at == '"' ? at + 1 : at;
}

/* Past the value that begins at `at`; without recursion, so that depth costs nothing. */
static const char *skip_value(const char *at)
{
    size_t depth = 0;
    do {
        at = skip_line_blanks(at);
        if (*at == '"') {
            at = skip_string(at);
        } else if (*at == '{' || *at == '[') {
            depth++;
            at++;
        } else if (*at == '}' || *at == ']') {
            depth -= depth > 0;
            at++;
        } else if (*at == ',' || *at == ':') {
            at++;
        } else {
            size_t length = strcspn(at, " \t\r\n,:{}[]\"");
            at += length;
        }
    } while (depth > 0 && *at != '\0');
    return at;
}

/* The value under `key`, or NULL. Keys with escapes are not met in manifests that kiln knows. */
static const char *find_key(const char *at, const char *key)
{
    size_t length = strlen(key);
    at = skip_line_blanks(at + 1);
    while (*at == '"') {
        const char *name = at + 1;
        const char *end = skip_string(at);
        const char *value = skip_line_blanks(end);
        value = skip_line_blanks(*value == ':' ? value + 1 : value);
        if ((size_t)(end - name) == length + 1 && memcmp(name, key, length) == 0) {
            return value;
        }
        at = skip_line_blanks(skip_value(value));
        at = skip_line_blanks(*at == ',' ? at + 1 : at);
    }
    return NULL;
}

static const char *find_index(const char *at, size_t index)
{
    at = skip_line_blanks(at + 1);
    while (*at != '\0' && *at != ']') {
        if (index-- == 0) {
            return at;
        }
        at = skip_line_blanks(skip_value(at));
        at = skip_line_blanks(*at == ',' ? at + 1 : at);
    }
    return NULL;
}

void where_find(const char *text, const where_path *path, size_t *out_line, size_t *out_column)
{
    const char *at = skip_line_blanks(text);
    for (size_t i = 0; i < path->count; i++) {
        const where_step *step = &path->steps[i];
        const char *next = NULL;
        if (step->key != NULL && *at == '{') {
            next = find_key(at, step->key);
        } else if (step->key == NULL && *at == '[') {
            next = find_index(at, step->index);
        }
        if (next == NULL) {
            break;
        }
        at = next;
    }
    *out_line = 1;
    const char *line = text;
    for (const char *c = text; c < at; c++) {
        if (*c == '\n') {
            (*out_line)++;
            line = c + 1;
        }
    }
    *out_column = (size_t)(at - line) + 1;
}
