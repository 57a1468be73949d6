/* What can be said of a source by its own text: whether it names any file, and whether it holds
 * something that no cache may pass over. Opens nothing. */
#include "headers/closure_walk.h"

#include <string.h>

#include "base/text.h"
#include "headers/characters.h"
#include "headers/include_scan.h"
#include "sys/file.h"

kn_source_form kn_closure_form(kiln_language language)
{
    static const kn_source_form forms[] = {
#define KN_LANGUAGE(id, name, ending, other, form, ...) [KILN_LANG_##id] = KN_FORM_##form,
#define KN_LANGUAGE_INTERNAL(id, name, ending, form) [KILN_LANG_##id] = KN_FORM_##form,
#include "base/languages.def"
    };
    const size_t index = (size_t)language;
    return index < sizeof forms / sizeof *forms ? forms[index] : KN_FORM_C;
}

static bool contains_text(kn_span text, const char *what)
{
    const size_t length = strlen(what);
    for (size_t i = 0; i + length <= text.length; i++) {
        if (memcmp(text.data + i, what, length) == 0) {
            return true;
        }
    }
    return false;
}

const char *kn_include_scan_words(kn_span text)
{
    static const char *const words[] = {"__DATE__",      "__TIME__",    "__TIMESTAMP__",
                                        "__has_include", "__has_embed", ".incbin"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (contains_text(text, words[i])) {
            return words[i];
        }
    }
    return NULL;
}

static bool mentions_name(kn_span text)
{
    static const char *const words[] = {"__FILE", "__BASE_FILE__", "__builtin_FILE",
                                        "source_location", "assert"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (contains_text(text, words[i])) {
            return true;
        }
    }
    return false;
}

/* The texts next to the source: name and value (or NULL) of each define, then the options. */
static size_t count_texts(const kiln_source *source)
{
    return 2 * source->define_count + source->option_count;
}

static const char *text_at(const kiln_source *source, size_t i)
{
    if (i >= 2 * source->define_count) {
        return source->options[i - 2 * source->define_count];
    }
    const kiln_define *define = &source->defines[i / 2];
    return i % 2 == 0 ? define->name : define->value;
}

static kiln_status note_any(void *user, const kn_scan_event *event)
{
    (void)event;
    *(bool *)user = true;
    return KILN_OK;
}

/* Backends put definitions before the text, a line each: what has a line break may go on with a
 * directive that is in no text that is scanned. */
static const char *find_reason(const char *text)
{
    return text != NULL && strpbrk(text, "\r\n") != NULL
               ? "a line break"
               : kn_include_scan_words(kn_span_of_text(text));
}

const char *kn_closure_settle_pieces(const kiln_source *source, kn_pieces *pieces, bool *out_names)
{
    for (size_t i = 0; i < count_texts(source); i++) {
        kn_pieces_note_text(pieces, kn_span_of_text(text_at(source, i)));
    }
    *out_names = *out_names || kn_pieces_name_file(pieces);
    return kn_pieces_stop(pieces);
}

void kn_closure_glance_options(const kiln_source *source, bool *out_names, char *reason,
                               size_t reason_size)
{
    const char *word = NULL;
    *out_names = false;
    for (size_t i = 0; i < count_texts(source); i++) {
        const char *text = text_at(source, i);
        *out_names = *out_names || mentions_name(kn_span_of_text(text));
        word = word != NULL ? word : find_reason(text);
    }
    if (word != NULL) {
        kn_text_putf(reason, reason_size, "%s in a define or an option", word);
    }
}

bool kn_closure_may_include(const kiln_source *source)
{
    static const char word[] = "include";
    const size_t size = sizeof word - 1;
    const kn_span text = kn_span_of(source->text, source->length);
    const char *p = text.data, *end = p + text.length;
    while (p < end && (p = memchr(p, '#', (size_t)(end - p))) != NULL) {
        p++;
        while (p < end && is_blank((unsigned char)*p)) {
            p++;
        }
        if ((size_t)(end - p) >= size && memcmp(p, word, size) == 0) {
            return true;
        }
    }
    return false;
}

kiln_status kn_closure_glance(const kiln_source *source, bool *out_includes, bool *out_names,
                              char *reason, size_t reason_size)
{
    kn_scan_stop stop;
    kn_pieces pieces = {.marks = 0};
    const kn_scan_reader reader = {
        .report = note_any, .user = out_includes, .computed = true, .pieces = &pieces};
    *out_includes = false;
    kiln_status status = kn_include_scan(kn_span_of(source->text, source->length),
                                         kn_closure_raw_strings(source), &reader, &stop);
    *out_names = stop.names;
    const char *why = kn_closure_settle_pieces(source, &pieces, out_names);
    stop.why = stop.why != NULL ? stop.why : why;
    if (status == KILN_OK && stop.why != NULL) {
        const char *name = source->name != NULL ? kn_path_name(source->name) : "source";
        if (stop.line > 0) {
            kn_text_putf(reason, reason_size, "%s:%zu: %s", name, stop.line, stop.why);
        } else {
            kn_text_putf(reason, reason_size, "%s: %s", name, stop.why);
        }
    }
    return status;
}
