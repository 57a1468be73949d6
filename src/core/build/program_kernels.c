/* See program_kernels.h. The fact has a line for each kernel: its name and, each behind a tab, its
 * attributes and the qualifiers of its parameters. */
#include "core/build/program_kernels.h"

#include <string.h>

#include "base/strbuf.h"

#define LISTED_MAX 40 /* names in a message */

/* Takes what is before `stop`, or all, off the front of `rest`. */
static kn_span cut_field(kn_span *rest, char stop)
{
    const char *end = memchr(rest->data, stop, rest->length);
    const size_t length = end != NULL ? (size_t)(end - rest->data) : rest->length;
    const size_t used = length + (end != NULL);
    const kn_span field = kn_span_of(rest->data, length);
    *rest = kn_span_of(rest->data + used, rest->length - used);
    return field;
}

/* Takes the next line off the front of `rest`. What is behind its name stays in *out_more. */
static bool next_kernel(kn_span *rest, kn_span *out_name, kn_span *out_more)
{
    if (rest->length == 0) {
        return false;
    }
    *out_more = cut_field(rest, '\n');
    *out_name = cut_field(out_more, '\t');
    return true;
}

kn_span kn_kernels_of(const kn_build *build)
{
    for (size_t i = build->stage_count; i > 0; i--) {
        size_t size = 0;
        const void *fact =
            kn_host.artifact_fact(&build->runs[i - 1].artifact.base, KILN_FACT_ENTRIES, &size);
        if (fact != NULL) {
            return kn_span_of((const char *)fact, size);
        }
    }
    return kn_span_of("", 0);
}

static bool has_kernel(kn_span kernels, const char *entry)
{
    kn_span name, more;
    while (next_kernel(&kernels, &name, &more)) {
        if (name.length == strlen(entry) && memcmp(name.data, entry, name.length) == 0) {
            return true;
        }
    }
    return false;
}

static kiln_status refuse_entry(kn_span kernels, const kiln_source *source, const char *entry,
                                kiln_diag *diag)
{
    kn_strbuf list;
    kn_span name, more;
    size_t count = 0;
    kn_strbuf_init(&list, 0);
    while (next_kernel(&kernels, &name, &more)) {
        if (count++ < LISTED_MAX) {
            kn_strbuf_printf(&list, "%s%.*s", count > 1 ? ", " : "", (int)name.length, name.data);
        }
    }
    (void)kiln_diag_set(diag, KILN_E_INVALID, "name one of these",
                        source->name != NULL ? source->name : "a source",
                        "it has no kernel \"%s\"; it has %s%s", entry, kn_strbuf_text(&list),
                        count > LISTED_MAX ? ", ..." : "");
    kn_strbuf_deinit(&list);
    return KILN_E_INVALID;
}

kiln_status kn_kernels_check(kn_span kernels, const kiln_source *source, kiln_diag *diag)
{
    for (size_t i = 0; kernels.length > 0 && i < source->entry_count; i++) {
        if (!has_kernel(kernels, source->entries[i])) {
            return refuse_entry(kernels, source, source->entries[i], diag);
        }
    }
    return KILN_OK;
}

static void append_text(kn_strbuf *copy, kn_span text)
{
    kn_strbuf_append(copy, text.data, text.length);
    kn_strbuf_append_char(copy, '\0');
}

char *kn_kernels_copy(kn_span kernels, size_t *out_size)
{
    kn_strbuf copy;
    kn_span name, more;
    kn_strbuf_init(&copy, 0);
    while (next_kernel(&kernels, &name, &more)) {
        append_text(&copy, name);
        append_text(&copy, cut_field(&more, '\t'));
        while (more.length > 0 && more.data[0] != '\t') { /* one that is empty would be the last */
            append_text(&copy, cut_field(&more, '\t'));
        }
        kn_strbuf_append_char(&copy, '\0');
    }
    char *text = kn_strbuf_ok(&copy) && copy.length > 0 ? kn_strbuf_detach(&copy, out_size) : NULL;
    kn_strbuf_deinit(&copy);
    return text;
}

/* The text at *at, which moves behind it; "" past the end. */
static const char *next_text(const char *copy, size_t size, size_t *at)
{
    const char *text = *at < size ? copy + *at : "";
    *at += strlen(text) + 1;
    return text;
}

kiln_status kn_kernels_keep(const char *copy, size_t size, kiln_artifact *artifact)
{
    size_t there = 0;
    kn_strbuf fact;
    if (copy == NULL || kn_host.artifact_fact(artifact, KILN_FACT_ENTRIES, &there) != NULL) {
        return KILN_OK;
    }
    kn_strbuf_init(&fact, 0);
    for (size_t at = 0; at < size;) {
        kn_strbuf_append_text(&fact, next_text(copy, size, &at));
        const char *attributes = next_text(copy, size, &at);
        const char *qualifiers = next_text(copy, size, &at);
        const bool more = attributes[0] != '\0' || qualifiers[0] != '\0';
        kn_strbuf_printf(&fact, "%s%s", more ? "\t" : "", attributes);
        for (; qualifiers[0] != '\0'; qualifiers = next_text(copy, size, &at)) {
            kn_strbuf_printf(&fact, "\t%s", qualifiers);
        }
        kn_strbuf_append_char(&fact, '\n');
    }
    kiln_status status = kn_strbuf_ok(&fact)
                             ? kn_host.artifact_set_fact(artifact, KILN_FACT_ENTRIES,
                                                         kn_strbuf_text(&fact), fact.length)
                             : KILN_E_NOMEM;
    kn_strbuf_deinit(&fact);
    return status;
}

/* Moves *at behind the name of a kernel; false if it is not there. */
static bool find_kernel(const char *copy, size_t size, const char *entry, size_t *at)
{
    *at = 0;
    while (copy != NULL && *at < size) {
        if (strcmp(next_text(copy, size, at), entry) == 0) {
            return true;
        }
        (void)next_text(copy, size, at);
        while (next_text(copy, size, at)[0] != '\0') {
        }
    }
    return false;
}

const char *kn_kernels_attributes(const char *copy, size_t size, const char *entry)
{
    size_t at = 0;
    return find_kernel(copy, size, entry, &at) ? next_text(copy, size, &at) : NULL;
}

const char *kn_kernels_qualifiers(const char *copy, size_t size, const char *entry, size_t index)
{
    size_t at = 0;
    if (!find_kernel(copy, size, entry, &at)) {
        return NULL;
    }
    (void)next_text(copy, size, &at);
    const char *text = next_text(copy, size, &at);
    for (; index > 0 && text[0] != '\0'; index--) {
        text = next_text(copy, size, &at);
    }
    return text[0] != '\0' ? text : NULL;
}
