/* Compares recipes as bags of lines. This file must not know where they are from. */
#include "store/format/recipe_diff.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* What a field is about, by the beginning of its name, and how much it weighs. Backends' own fields
 * have a dot ("opencl.driver") and are about the driver. */
static const struct kind {
    const char *prefix;
    kiln_why why;
    unsigned weight;
} kinds[] = {
    {"source", KILN_WHY_SOURCE, 64}, {"language", KILN_WHY_SOURCE, 16},
    {"input", KILN_WHY_INPUT, 64},   {"option", KILN_WHY_OPTIONS, 4},
    {"define", KILN_WHY_OPTIONS, 4}, {"flag", KILN_WHY_OPTIONS, 4},
    {"entr", KILN_WHY_ENTRY, 8},     {"header", KILN_WHY_HEADER, 4},
    {"include", KILN_WHY_HEADER, 1}, {"env.", KILN_WHY_ENVIRONMENT, 2},
    {"target", KILN_WHY_DRIVER, 8},  {"compiler", KILN_WHY_DRIVER, 2},
    {"driver", KILN_WHY_DRIVER, 2},  {"device", KILN_WHY_DRIVER, 2},
    {"stage", KILN_WHY_STAGE, 128},  {"revision", KILN_WHY_STAGE, 2},
    {"artifact", KILN_WHY_STAGE, 2}, {"kiln-recipe", KILN_WHY_STAGE, 2},
};
static const struct kind a_driver = {"", KILN_WHY_DRIVER, 1}, a_field = {"", KILN_WHY_FIELD, 4};

static const struct kind *kind_of(kn_span name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t length = strlen(kinds[i].prefix);
        if (name.length >= length && memcmp(name.data, kinds[i].prefix, length) == 0) {
            return &kinds[i];
        }
    }
    return name.length > 0 && memchr(name.data, '.', name.length) != NULL ? &a_driver : &a_field;
}

kiln_why kn_recipe_about(kn_span name)
{
    return kind_of(name)->why;
}

/* --- lines ------------------------------------------------------------------------------------ */

bool kn_recipe_split(kn_span text, kn_recipe_lines *out_lines)
{
    size_t room = 1;
    kn_recipe_field field;
    for (size_t i = 0; i < text.length; i++) {
        room += text.data[i] == '\n';
    }
    *out_lines = (kn_recipe_lines){.fields = calloc(room, sizeof field)};
    if (out_lines->fields == NULL) {
        return false;
    }
    while (out_lines->count < room && kn_recipe_next(&text, &field)) {
        out_lines->fields[out_lines->count++] = field;
    }
    return true;
}

void kn_recipe_lines_deinit(kn_recipe_lines *lines)
{
    free(lines->fields);
    *lines = (kn_recipe_lines){NULL, 0};
}

kn_span kn_recipe_value(const kn_recipe_lines *lines, const char *name)
{
    for (size_t i = 0; i < lines->count; i++) {
        if (kn_span_equal(lines->fields[i].name, kn_span_of_text(name))) {
            return lines->fields[i].value;
        }
    }
    return kn_span_of(NULL, 0);
}

static bool same_line(const kn_recipe_field *a, const kn_recipe_field *b)
{
    return kn_span_equal(a->value, b->value) && kn_span_equal(a->name, b->name) &&
           kn_span_equal(a->type, b->type);
}

/* Marks the lines that both have. False when out of memory. */
typedef struct pairing {
    bool *then, *now; /* matched */
    const kn_recipe_lines *old, *new;
} pairing;

static bool pair_up(const kn_recipe_lines *then, const kn_recipe_lines *now, pairing *out)
{
    *out = (pairing){
        .then = calloc(then->count + now->count + 1, sizeof(bool)), .old = then, .new = now};
    if (out->then == NULL) {
        return false;
    }
    out->now = out->then + then->count;
    size_t next = 0; /* most lines are in the same order */
    for (size_t i = 0; i < now->count; i++) {
        for (size_t tries = 0; tries < then->count; tries++) {
            size_t j = (next + tries) % then->count;
            if (!out->then[j] && same_line(&then->fields[j], &now->fields[i])) {
                out->then[j] = out->now[i] = true;
                next = j + 1;
                break;
            }
        }
    }
    return true;
}

uint64_t kn_recipe_distance(const kn_recipe_lines *then, const kn_recipe_lines *now)
{
    pairing p;
    uint64_t distance = 0;
    if (!pair_up(then, now, &p)) {
        return UINT64_MAX;
    }
    for (size_t i = 0; i < then->count; i++) {
        distance += p.then[i] ? 0 : kind_of(then->fields[i].name)->weight;
    }
    for (size_t i = 0; i < now->count; i++) {
        distance += p.now[i] ? 0 : kind_of(now->fields[i].name)->weight;
    }
    free(p.then);
    return distance;
}

/* --- differences ------------------------------------------------------------------------------ */

/* The part of a value that says which of several fields of a name it is: a header's name, a
 * module's. */
static kn_span field_subject(const kn_recipe_field *field)
{
    const char *blank =
        field->value.length > 0 ? memchr(field->value.data, ' ', field->value.length) : NULL;
    return blank != NULL ? kn_span_of(field->value.data, (size_t)(blank - field->value.data))
                         : kn_span_of(NULL, 0);
}

/* The old line that an unmatched new one took the place of: of the same name and, if `strict`,
 * about the same thing. SIZE_MAX if there is none. */
static size_t find_counterpart(const pairing *p, const kn_recipe_field *now, bool strict)
{
    for (size_t j = 0; j < p->old->count; j++) {
        const kn_recipe_field *then = &p->old->fields[j];
        if (!p->then[j] && kn_span_equal(then->name, now->name) &&
            (!strict || kn_span_equal(field_subject(then), field_subject(now)))) {
            return j;
        }
    }
    return SIZE_MAX;
}

static const char *put_text(kn_recipe_diff *diff, size_t *used, kn_span text)
{
    char *at = diff->texts + *used;
    if (text.length > 0) {
        memcpy(at, text.data, text.length);
    }
    at[text.length] = '\0';
    *used += text.length + 1;
    return at;
}

static void put_difference(kn_recipe_diff *diff, size_t *used, const kn_recipe_field *then,
                           const kn_recipe_field *now)
{
    const kn_recipe_field *any = now != NULL ? now : then;
    kiln_difference *item = &diff->items[diff->count];
    diff->list[diff->count++] = item;
    item->struct_size = sizeof *item;
    item->why = kind_of(any->name)->why;
    item->field = put_text(diff, used, any->name);
    item->then = then != NULL ? put_text(diff, used, then->value) : NULL;
    item->now = now != NULL ? put_text(diff, used, now->value) : NULL;
    if (diff->why == KILN_WHY_HIT || item->why < diff->why) {
        diff->why = item->why;
    }
}

static size_t text_room(const kn_recipe_lines *lines)
{
    size_t room = 0;
    for (size_t i = 0; i < lines->count; i++) {
        room += lines->fields[i].name.length + lines->fields[i].value.length + 3;
    }
    return room;
}

/* New lines in two rounds, so that "h.h" is compared with "h.h" and not with what came first. */
static void put_all(pairing *p, kn_recipe_diff *diff, size_t *used)
{
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < p->new->count; i++) {
            const kn_recipe_field *now = &p->new->fields[i];
            size_t j = p->now[i] ? SIZE_MAX : find_counterpart(p, now, round == 0);
            if (p->now[i] || (j == SIZE_MAX && round == 0)) {
                continue;
            }
            put_difference(diff, used, j != SIZE_MAX ? &p->old->fields[j] : NULL, now);
            p->now[i] = true;
            if (j != SIZE_MAX) {
                p->then[j] = true;
            }
        }
    }
    for (size_t j = 0; j < p->old->count; j++) {
        if (!p->then[j]) {
            put_difference(diff, used, &p->old->fields[j], NULL);
        }
    }
}

bool kn_recipe_compare(const kn_recipe_lines *then, const kn_recipe_lines *now,
                       kn_recipe_diff *out_diff)
{
    pairing p = {0};
    size_t used = 0;
    *out_diff = (kn_recipe_diff){.why = KILN_WHY_HIT};
    out_diff->items = calloc(then->count + now->count + 1, sizeof *out_diff->items);
    out_diff->texts = malloc(2 * (text_room(then) + text_room(now)) + 1);
    out_diff->list = calloc(then->count + now->count + 1, sizeof *out_diff->list);
    if (out_diff->items == NULL || out_diff->list == NULL || out_diff->texts == NULL ||
        !pair_up(then, now, &p)) {
        kn_recipe_diff_deinit(out_diff);
        return false;
    }
    put_all(&p, out_diff, &used);
    /* The same lines in another order: the first that moved. */
    for (size_t i = 0; out_diff->count == 0 && i < now->count && i < then->count; i++) {
        if (!same_line(&then->fields[i], &now->fields[i])) {
            put_difference(out_diff, &used, &then->fields[i], &now->fields[i]);
        }
    }
    free(p.then);
    return true;
}

void kn_recipe_diff_deinit(kn_recipe_diff *diff)
{
    free(diff->items);
    free(diff->list);
    free(diff->texts);
    *diff = (kn_recipe_diff){.why = KILN_WHY_HIT};
}

const char *kiln_why_text(kiln_why why)
{
    switch (why) {
#define WHY_TEXT(name, text)                                                                       \
    case name:                                                                                     \
        return text;
        KILN_WHY_MAP(WHY_TEXT)
#undef WHY_TEXT
    }
    return "unknown";
}
