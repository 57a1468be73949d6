/* See entry_name.h. The parts of a recipe are read from its text (docs/reference/formats.md). */
#include "cli/entry_name.h"

#include <stdio.h>
#include <string.h>

#include "cli/diag.h"

/* --- what a recipe says ----------------------------------------------------------------------- */

/* A line "name type value": the value without its quotes. NULL: no line of that name from `text`
 * on. */
static const char *find_field(const char *text, const char *name, size_t *out_length)
{
    const size_t length = strlen(name);
    for (const char *line = text; line != NULL && *line != '\0';) {
        const char *end = line + strcspn(line, "\n");
        if (strncmp(line, name, length) == 0 && line[length] == ' ') {
            const char *value = memchr(line + length + 1, ' ', (size_t)(end - line) - length - 1);
            if (value != NULL) {
                const bool quoted = value[1] == '"' && end > value + 2;
                *out_length = (size_t)(end - value) - (quoted ? 3 : 1);
                return value + (quoted ? 2 : 1);
            }
        }
        line = *end == '\n' ? end + 1 : end;
    }
    return NULL;
}

static const char *copy_field(cli_pool *pool, const char *recipe, const char *name)
{
    size_t length = 0;
    const char *value = find_field(recipe, name, &length);
    return value != NULL ? pool_text(pool, value, length) : NULL;
}

/* The length of the first line of a value, whose line feeds are escaped. */
static size_t measure_line(const char *value, size_t length)
{
    size_t used = 0;
    while (used < length && !(value[used] == '\\' && used + 1 < length && value[used + 1] == 'n')) {
        used += value[used] == '\\' && used + 1 < length ? 2 : 1;
    }
    return used;
}

/* Its label or the first words of its sort that it has, and what it was specialised with. */
static const char *name_recipe(cli_pool *pool, const char *label, const char *recipe)
{
    static const char *const fields[] = {"entry", "kernel", "function", "path", "name"};
    enum { LONGEST = 200, DIGEST = 12 };
    char text[LONGEST + 1];
    size_t length = 0;
    (void)snprintf(text, sizeof(text), "%s", label);
    const char *stage = find_field(recipe, "stage", &length);
    const bool vulkan = stage != NULL && strncmp(stage, "vulkan.", 7) == 0; /* "name": a device's */
    const size_t count = sizeof(fields) / sizeof(fields[0]) - vulkan;
    for (size_t i = 0; i < count && text[0] == '\0'; i++) {
        const char *value = find_field(recipe, fields[i], &length);
        if (value != NULL) {
            length = measure_line(value, length);
            (void)snprintf(text, sizeof(text), "%.*s", (int)(length < LONGEST ? length : LONGEST),
                           value);
        }
    }
    const char *kind = "source";
    const char *source = find_field(recipe, kind, &length);
    if (source == NULL) {
        kind = "input"; /* what the stage before made */
        source = find_field(recipe, kind, &length);
    }
    const char *digest = source != NULL ? memchr(source, ' ', length) : NULL;
    if (text[0] == '\0' && digest != NULL) { /* "1015 876275…" */
        (void)snprintf(text, sizeof(text), "%s %.*s..", kind, DIGEST, digest + 1);
    }
    const char *define = recipe;
    while ((define = find_field(define, "define", &length)) != NULL) {
        size_t value_length = 0;
        const size_t used = strlen(text);
        const char *value = find_field(define, "define.value", &value_length);
        if (used + length + value_length + 8 > LONGEST) {
            break;
        }
        (void)snprintf(text + used, sizeof(text) - used, "%s%.*s%s%.*s", used > 0 ? " " : "",
                       (int)length, define, value != NULL ? "=" : "", (int)value_length,
                       value != NULL ? value : "");
    }
    return pool_text(pool, text, strlen(text));
}

bool entry_name_of(cli_pool *pool, const kiln_entry_info *info, entry_name *out_name)
{
    const char *recipe = info->recipe != NULL ? info->recipe : "";
    const char *stage = copy_field(pool, recipe, "stage");
    out_name->stage = stage != NULL ? stage : "?";
    out_name->name = name_recipe(pool, info->label != NULL ? info->label : "", recipe);
    out_name->note =
        strncmp(out_name->stage, "kiln.", 5) == 0 || strcmp(out_name->stage, "headers") == 0;
    return out_name->name != NULL;
}

typedef struct name_visit {
    cli_pool *pool;
    entry_name *name;
} name_visit;

static kiln_status take_name(void *user, const kiln_entry_info *info)
{
    const name_visit *visit = user;
    return entry_name_of(visit->pool, info, visit->name) ? KILN_OK : KILN_E_NOMEM;
}

kiln_status entry_name_find(kiln_cache *cache, const kiln_key *key, cli_pool *pool,
                            entry_name *out_name, kiln_diag *diag)
{
    name_visit visit = {pool, out_name};
    const kiln_status status = kiln_cache_inspect(cache, key, take_name, &visit, diag);
    return status == KILN_E_NOMEM ? diag_no_memory(diag, "naming an entry") : status;
}
