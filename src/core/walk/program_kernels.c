/* See program_kernels.h. The fact has a line for each kernel: its name and, behind a tab, its
 * attributes.
 */
#include "core/walk/program_kernels.h"

#include <string.h>

#include "base/strbuf.h"

#define LISTED_MAX 40 /* names in a message */

/* Takes the next line off the front of `rest`. */
static bool next_kernel(kn_span *rest, kn_span *out_name, kn_span *out_attributes)
{
    if (rest->length == 0) {
        return false;
    }
    const char *end = memchr(rest->data, '\n', rest->length);
    const size_t length = end != NULL ? (size_t)(end - rest->data) : rest->length;
    const char *tab = memchr(rest->data, '\t', length);
    const size_t name = tab != NULL ? (size_t)(tab - rest->data) : length;
    *out_name = kn_span_of(rest->data, name);
    *out_attributes = tab != NULL ? kn_span_of(tab + 1, length - name - 1) : kn_span_of("", 0);
    const size_t used = length + (end != NULL);
    *rest = kn_span_of(rest->data + used, rest->length - used);
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
    kn_span name, attributes;
    while (next_kernel(&kernels, &name, &attributes)) {
        if (name.length == strlen(entry) && memcmp(name.data, entry, name.length) == 0) {
            return true;
        }
    }
    return false;
}

static kiln_status refuse(kn_span kernels, const kiln_source *source, const char *entry,
                          kiln_diag *diag)
{
    kn_strbuf list;
    kn_span name, attributes;
    size_t count = 0;
    kn_strbuf_init(&list, 0);
    while (next_kernel(&kernels, &name, &attributes)) {
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
            return refuse(kernels, source, source->entries[i], diag);
        }
    }
    return KILN_OK;
}

char *kn_kernels_copy(kn_span kernels, size_t *out_size)
{
    kn_strbuf copy;
    kn_span name, attributes;
    kn_strbuf_init(&copy, 0);
    while (next_kernel(&kernels, &name, &attributes)) {
        kn_strbuf_append(&copy, name.data, name.length);
        kn_strbuf_append_char(&copy, '\0');
        kn_strbuf_append(&copy, attributes.data, attributes.length);
        kn_strbuf_append_char(&copy, '\0');
    }
    char *text = kn_strbuf_ok(&copy) && copy.length > 0 ? kn_strbuf_detach(&copy, out_size) : NULL;
    kn_strbuf_deinit(&copy);
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
        const char *attributes = copy + at + strlen(copy + at) + 1;
        kn_strbuf_printf(&fact, "%s%s%s\n", copy + at, attributes[0] != '\0' ? "\t" : "",
                         attributes);
        at = (size_t)(attributes - copy) + strlen(attributes) + 1;
    }
    kiln_status status = kn_strbuf_ok(&fact)
                             ? kn_host.artifact_set_fact(artifact, KILN_FACT_ENTRIES,
                                                         kn_strbuf_text(&fact), fact.length)
                             : KILN_E_NOMEM;
    kn_strbuf_deinit(&fact);
    return status;
}

const char *kn_kernels_attributes(const char *copy, size_t size, const char *entry)
{
    for (size_t at = 0; copy != NULL && at < size;) {
        const char *attributes = copy + at + strlen(copy + at) + 1;
        if (strcmp(copy + at, entry) == 0) {
            return attributes;
        }
        at = (size_t)(attributes - copy) + strlen(attributes) + 1;
    }
    return NULL;
}
