/* See macro_table.h. */
#include "headers/macro_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "headers/characters.h"

void kn_macros_init(kn_macros *macros)
{
    *macros = (kn_macros){0};
    kn_map_init(&macros->map);
}

void kn_macros_deinit(kn_macros *macros)
{
    size_t cursor = 0;
    void *value = NULL;
    while (kn_map_next(&macros->map, &cursor, NULL, NULL, &value)) {
        kn_macro *macro = value;
        while (macro->bodies != NULL) {
            kn_macro_body *next = macro->bodies->next;
            free(macro->bodies);
            macro->bodies = next;
        }
        free(macro);
    }
    kn_map_deinit(&macros->map);
}

kn_macro *kn_macros_find(const kn_macros *macros, kn_span name)
{
    return kn_map_find(&macros->map, name.data, name.length);
}

static kn_macro *find_or_add(kn_macros *macros, kn_span name)
{
    kn_macro *macro = kn_macros_find(macros, name);
    if (macro == NULL) {
        macro = calloc(1, sizeof *macro);
        if (macro != NULL && !kn_map_put(&macros->map, name.data, name.length, macro, NULL)) {
            free(macro);
            macro = NULL;
        }
    }
    return macro;
}

static void set_flag(kn_macros *macros, bool *flag)
{
    macros->generation += !*flag;
    *flag = true;
}

static kiln_status add_body(kn_macros *macros, kn_macro *macro, kn_span rest)
{
    if (rest.data == NULL) {
        set_flag(macros, &macro->opaque);
        return KILN_OK;
    }
    kn_macro_body **end = &macro->bodies;
    for (; *end != NULL; end = &(*end)->next) {
        if (kn_span_equal(kn_span_of((*end)->text, (*end)->length), rest)) {
            return KILN_OK;
        }
    }
    *end = calloc(1, sizeof(kn_macro_body) + rest.length + 1);
    if (*end == NULL) {
        return KILN_E_NOMEM;
    }
    memcpy((*end)->text, rest.data, rest.length);
    (*end)->length = rest.length;
    macro->count++;
    macros->generation++;
    return KILN_OK;
}

kiln_status kn_macros_define(kn_macros *macros, kn_span name, kn_span rest)
{
    kn_macro *macro = find_or_add(macros, name);
    if (macro == NULL) {
        return KILN_E_NOMEM;
    }
    set_flag(macros, &macro->from_text);
    return add_body(macros, macro, rest);
}

kiln_status kn_macros_undefine(kn_macros *macros, kn_span name)
{
    kn_macro *macro = find_or_add(macros, name);
    if (macro == NULL) {
        return KILN_E_NOMEM;
    }
    set_flag(macros, &macro->undefined);
    return KILN_OK;
}

/* --- options ---------------------------------------------------------------------------------- */

static size_t word_length(kn_span text)
{
    size_t length = 0;
    while (length < text.length && is_word((unsigned char)text.data[length])) {
        length++;
    }
    return length;
}

/* `head` is NAME or NAME(x,y); `value` what follows the "=", or "1". */
static kiln_status give_macro(kn_macros *macros, kn_span head, kn_span value)
{
    const size_t length = word_length(head);
    if (length == 0 || is_digit((unsigned char)head.data[0]) ||
        (length < head.length && head.data[length] != '(')) {
        set_flag(macros, &macros->doubtful);
        return KILN_OK;
    }
    const size_t size = head.length - length + 1 + value.length;
    char *rest = malloc(size);
    kn_macro *macro = find_or_add(macros, kn_span_of(head.data, length));
    if (rest == NULL || macro == NULL) {
        free(rest);
        return KILN_E_NOMEM;
    }
    memcpy(rest, head.data + length, head.length - length);
    rest[head.length - length] = ' ';
    if (value.length > 0) {
        memcpy(rest + head.length - length + 1, value.data, value.length);
    }
    kiln_status status = add_body(macros, macro, kn_span_of(rest, size));
    free(rest);
    macro->given = true;
    return status;
}

static kiln_status give_option(kn_macros *macros, kn_span text)
{
    const char *equals = text.length > 0 ? memchr(text.data, '=', text.length) : NULL;
    if (equals == NULL) {
        return give_macro(macros, text, kn_span_of_text("1"));
    }
    const size_t head = (size_t)(equals - text.data);
    return give_macro(macros, kn_span_of(text.data, head),
                      kn_span_of(equals + 1, text.length - head - 1));
}

static kiln_status take_back(kn_macros *macros, kn_span name)
{
    if (name.length == 0 || word_length(name) != name.length) {
        set_flag(macros, &macros->doubtful);
        return KILN_OK;
    }
    return kn_macros_undefine(macros, name);
}

typedef struct spelling {
    const char *text;
    bool undefines;
} spelling;

static const spelling spellings[] = {
    {"--define-macro", false},
    {"--undefine-macro", true},
    {"-D", false},
    {"-U", true},
};

/* Reads one word of the options. `waiting`: the one before it was such a spelling alone. */
static kiln_status read_option(kn_macros *macros, kn_span word, const spelling **waiting)
{
    const spelling *found = *waiting;
    *waiting = NULL;
    if (found != NULL) {
        return found->undefines ? take_back(macros, word) : give_option(macros, word);
    }
    for (size_t i = 0; i < sizeof spellings / sizeof spellings[0]; i++) {
        const size_t length = strlen(spellings[i].text);
        if (word.length < length || memcmp(word.data, spellings[i].text, length) != 0) {
            continue;
        }
        if (word.length == length) {
            *waiting = &spellings[i];
            return KILN_OK;
        }
        const bool is_long = spellings[i].text[1] == '-';
        const size_t from = length + (is_long && word.data[length] == '=');
        const kn_span rest = kn_span_of(word.data + from, word.length - from);
        return spellings[i].undefines ? take_back(macros, rest) : give_option(macros, rest);
    }
    return KILN_OK;
}

/* A driver of OpenCL gets all options as one text and cuts it at blanks. */
static kiln_status read_words(kn_macros *macros, const char *option, const spelling **waiting)
{
    static const char blanks[] = " \t\r\n\v\f";
    kiln_status status = KILN_OK;
    if (strpbrk(option, "\"'\\") != NULL) {
        set_flag(macros, &macros->doubtful);
    }
    for (option += strspn(option, blanks); *option != '\0' && status == KILN_OK;
         option += strspn(option, blanks)) {
        const size_t length = strcspn(option, blanks);
        status = read_option(macros, kn_span_of(option, length), waiting);
        option += length;
    }
    return status;
}

kiln_status kn_macros_give(kn_macros *macros, const kiln_source *source)
{
    kiln_status status = KILN_OK;
    for (size_t i = 0; i < source->define_count && status == KILN_OK; i++) {
        const char *value = source->defines[i].value;
        status = give_macro(macros, kn_span_of_text(source->defines[i].name),
                            kn_span_of_text(value != NULL ? value : "1"));
    }
    const spelling *waiting = NULL;
    for (size_t i = 0; i < source->option_count && status == KILN_OK; i++) {
        const char *option = source->options[i];
        status = source->language == KILN_LANG_OPENCL_C
                     ? read_words(macros, option, &waiting)
                     : read_option(macros, kn_span_of_text(option), &waiting);
    }
    return status;
}
