/* See walk_shape.h. */
#include "headers/walk_shape.h"

#include <stddef.h>

#include "headers/closure_walk.h"
#include "headers/include_scan.h"

/* Every text with its length, so that no two rows of texts read alike. */
static void append_part(kn_strbuf *out, char kind, unsigned flags, kn_span text)
{
    kn_strbuf_append_char(out, kind);
    kn_strbuf_append_u64(out, flags);
    kn_strbuf_append_char(out, ' ');
    kn_strbuf_append_u64(out, text.length);
    kn_strbuf_append_char(out, ' ');
    kn_strbuf_append(out, text.data, text.data != NULL ? text.length : 0);
}

static kiln_status shape_event(void *user, const kn_scan_event *event)
{
    kn_walk_shape *shape = user;
    const unsigned flags =
        (event->quoted ? 1u : 0u) | (event->next ? 2u : 0u) | (event->probe ? 4u : 0u);
    switch (event->kind) {
    case KN_SCAN_INCLUDE:
        append_part(&shape->includes, 'i', flags, event->text);
        break;
    case KN_SCAN_COMPUTED: /* its line is in a reason only */
        append_part(&shape->includes, 'c', flags, event->text);
        break;
    case KN_SCAN_DEFINE:
        append_part(&shape->definitions, 'd', event->rest.data == NULL, event->text);
        append_part(&shape->definitions, '=', 0,
                    event->rest.data != NULL ? event->rest : kn_span_of("", 0));
        break;
    case KN_SCAN_UNDEFINE:
        append_part(&shape->definitions, 'u', 0, event->text);
        break;
    }
    return KILN_OK;
}

static void append_options(const kiln_source *source, kn_strbuf *out)
{
    for (size_t i = 0; i < source->define_count; i++) {
        const char *value = source->defines[i].value;
        append_part(out, 'D', value == NULL, kn_span_of_text(source->defines[i].name));
        append_part(out, '=', 0, kn_span_of_text(value != NULL ? value : ""));
    }
    for (size_t i = 0; i < source->option_count; i++) {
        append_part(out, 'o', 0, kn_span_of_text(source->options[i]));
    }
}

void kn_walk_shape_make(const kn_include_path *path, kn_walk_shape *out_shape)
{
    const kn_closure_request *request = path->request;
    const kiln_source *source = request->source;
    const kn_scan_reader reader = {shape_event, out_shape, true, true, &out_shape->pieces};
    kn_scan_stop stop = {.why = NULL};
    *out_shape = (kn_walk_shape){.names = false};
    kn_strbuf_init(&out_shape->includes, 0);
    kn_strbuf_init(&out_shape->definitions, 0);
    if (request->memo == NULL || source->header_count > 0 || request->ships_header != NULL ||
        request->implied_count > 0) {
        return;
    }
    kn_include_path_describe(path, &out_shape->includes);
    append_part(&out_shape->includes, 'l', (unsigned)source->language, kn_span_of("", 0));
    append_options(source, &out_shape->definitions);
    const kiln_status status = kn_include_scan(kn_span_of(source->text, source->length),
                                               kn_closure_raw_strings(source), &reader, &stop);
    append_part(&out_shape->includes, 'm', stop.imports, kn_span_of("", 0));
    out_shape->names = stop.names;
    if (status != KILN_OK || stop.why != NULL || !kn_strbuf_ok(&out_shape->includes) ||
        !kn_strbuf_ok(&out_shape->definitions)) {
        kn_strbuf_deinit(&out_shape->includes);
        kn_strbuf_init(&out_shape->includes, 0);
    }
}

void kn_walk_shape_deinit(kn_walk_shape *shape)
{
    kn_strbuf_deinit(&shape->includes);
    kn_strbuf_deinit(&shape->definitions);
}
