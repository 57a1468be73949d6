/* A table of every definition seen, and the product of what a text's macros may stand for. */
#include "headers/macros.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { TEXT_MAX = 512, DEPTH_MAX = 12, EMIT_MAX = 256 };

typedef struct body {
    struct body *next;
    char text[];
} body;

typedef struct macro {
    body *bodies;
    bool opaque;
} macro;

void kn_macros_init(kn_macros *macros)
{
    kn_map_init(&macros->map);
    macros->generation = 0;
}

void kn_macros_deinit(kn_macros *macros)
{
    size_t cursor = 0;
    void *value = NULL;
    while (kn_map_next(&macros->map, &cursor, NULL, NULL, &value)) {
        macro *entry = value;
        while (entry->bodies != NULL) {
            body *next = entry->bodies->next;
            free(entry->bodies);
            entry->bodies = next;
        }
        free(entry);
    }
    kn_map_deinit(&macros->map);
}

static macro *find_or_add(kn_macros *macros, const char *name)
{
    macro *entry = kn_map_find(&macros->map, name, strlen(name));
    if (entry == NULL) {
        entry = calloc(1, sizeof *entry);
        if (entry != NULL && !kn_map_put(&macros->map, name, strlen(name), entry, NULL)) {
            free(entry);
            entry = NULL;
        }
    }
    return entry;
}

kiln_status kn_macros_define(kn_macros *macros, const char *name, const char *text)
{
    macro *entry = find_or_add(macros, name);
    if (entry == NULL) {
        return KILN_E_NOMEM;
    }
    if (text == NULL) {
        macros->generation += !entry->opaque;
        entry->opaque = true;
        return KILN_OK;
    }
    body **end = &entry->bodies;
    for (; *end != NULL; end = &(*end)->next) {
        if (strcmp((*end)->text, text) == 0) {
            return KILN_OK;
        }
    }
    const size_t size = strlen(text) + 1;
    *end = calloc(1, sizeof(body) + size);
    if (*end == NULL) {
        return KILN_E_NOMEM;
    }
    memcpy((*end)->text, text, size);
    macros->generation++;
    return KILN_OK;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

kiln_status kn_macros_define_option(kn_macros *macros, const char *option)
{
    static const char *const prefixes[] = {"-D", "--define-macro="};
    char name[TEXT_MAX];
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        if (kn_text_starts(option, prefixes[i])) {
            option += strlen(prefixes[i]);
            break;
        }
    }
    size_t length = 0;
    while (is_word(option[length])) {
        length++;
    }
    if (length == 0 || length >= sizeof name || (option[length] != '=' && option[length] != '\0')) {
        return KILN_OK;
    }
    memcpy(name, option, length);
    name[length] = '\0';
    return kn_macros_define(macros, name, option[length] == '=' ? option + length + 1 : "1");
}

/* --- expanding ----------------------------------------------------------------------------------
 */

typedef struct expansion {
    const kn_macros *macros;
    kn_macro_text_fn *emit;
    void *user;
    size_t emitted;
} expansion;

/* The first word at or after `at` that has a definition; its place and length. */
static const macro *next_macro(const expansion *e, const char *text, size_t at, size_t *out_start,
                               size_t *out_length)
{
    while (text[at] != '\0') {
        size_t length = 0;
        while (is_word(text[at + length])) {
            length++;
        }
        const macro *found = length > 0 ? kn_map_find(&e->macros->map, text + at, length) : NULL;
        if (found != NULL) {
            *out_start = at;
            *out_length = length;
            return found;
        }
        at += length > 0 ? length : 1;
    }
    return NULL;
}

/* Both is followed: that the word is the macro, by each of its definitions, and that it is not one
 * at that place. The depth is bounded by DEPTH_MAX. */
// NOLINTNEXTLINE(misc-no-recursion)
static kiln_status expand(expansion *e, const char *text, size_t at, unsigned depth)
{
    size_t start = 0;
    size_t length = 0;
    const macro *found = depth < DEPTH_MAX ? next_macro(e, text, at, &start, &length) : NULL;
    if (found == NULL) {
        return e->emitted++ < EMIT_MAX ? e->emit(e->user, text) : KILN_E_UNSUPPORTED;
    }
    if (found->opaque) {
        return KILN_E_UNSUPPORTED;
    }
    kiln_status status = expand(e, text, start + length, depth);
    for (const body *b = found->bodies; b != NULL && status == KILN_OK; b = b->next) {
        char replaced[TEXT_MAX];
        if (start + strlen(b->text) + strlen(text + start + length) >= sizeof replaced) {
            return KILN_E_UNSUPPORTED;
        }
        kn_text_putf(replaced, sizeof replaced, "%.*s%s%s", (int)start, text, b->text,
                     text + start + length);
        status = expand(e, replaced, start, depth + 1);
    }
    return status;
}

kiln_status kn_macros_expand(const kn_macros *macros, const char *name, kn_macro_text_fn *emit,
                             void *user)
{
    expansion e = {macros, emit, user, 0};
    if (kn_map_find(&macros->map, name, strlen(name)) == NULL) {
        return KILN_E_UNSUPPORTED;
    }
    return expand(&e, name, 0, 0);
}
