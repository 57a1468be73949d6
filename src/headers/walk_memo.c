/* See walk_memo.h. */
#include "headers/walk_memo.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "headers/closure_walk.h"
#include "headers/include_scan.h"
#include "sys/thread.h"

/* --- shapes ----------------------------------------------------------------------------------- */

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

bool kn_walk_shape_exists(const kn_walk_shape *shape)
{
    return shape->includes.length > 0;
}

/* --- the memo --------------------------------------------------------------------------------- */

typedef struct walk_row {
    kn_walk_facts facts;
    kn_strbuf definitions; /* empty unless `facts.computed` */
    kiln_blob *blob;
} walk_row;

struct kn_walk_memo {
    kn_mutex lock;
    kn_map rows;
    size_t bytes;
};

kn_walk_memo *kn_walk_memo_create(void)
{
    kn_walk_memo *memo = (kn_walk_memo *)calloc(1, sizeof(*memo));
    if (memo != NULL) {
        kn_mutex_init(&memo->lock);
        kn_map_init(&memo->rows);
    }
    return memo;
}

static void destroy_row(walk_row *row)
{
    if (row != NULL) {
        kn_strbuf_deinit(&row->definitions);
        kiln_blob_release(row->blob);
        free(row);
    }
}

void kn_walk_memo_destroy(kn_walk_memo *memo)
{
    size_t cursor = 0;
    void *row = NULL;
    if (memo == NULL) {
        return;
    }
    while (kn_map_next(&memo->rows, &cursor, NULL, NULL, &row)) {
        destroy_row((walk_row *)row);
    }
    kn_map_deinit(&memo->rows);
    kn_mutex_deinit(&memo->lock);
    free(memo);
}

static bool fits_definitions(const walk_row *row, const kn_walk_shape *shape)
{
    return !row->facts.computed ||
           kn_span_equal(kn_span_of(row->definitions.data, row->definitions.length),
                         kn_span_of(shape->definitions.data, shape->definitions.length));
}

bool kn_walk_memo_find(kn_walk_memo *memo, const kn_walk_shape *shape, const kiln_source *source,
                       kiln_blob **out_blob, bool *out_names)
{
    kn_walk_facts facts;
    bool found = false;
    if (memo == NULL || !kn_walk_shape_exists(shape) || !kn_mutex_try(&memo->lock)) {
        return false;
    }
    const walk_row *row =
        (const walk_row *)kn_map_find(&memo->rows, shape->includes.data, shape->includes.length);
    if (row != NULL && fits_definitions(row, shape)) {
        found = true;
        facts = row->facts;
        *out_blob = kiln_blob_retain(row->blob);
    }
    kn_mutex_unlock(&memo->lock);
    if (!found) {
        return false;
    }
    *out_names = facts.names || shape->names;
    kn_pieces_merge(&facts.pieces, &shape->pieces);
    if (kn_closure_settle_pieces(source, &facts.pieces, out_names) != NULL) {
        kiln_blob_release(*out_blob);
        return false;
    }
    return true;
}

static walk_row *make_row(const kn_walk_shape *shape, const kn_walk_facts *facts,
                          const kn_header_list *list)
{
    walk_row *row = (walk_row *)calloc(1, sizeof(*row));
    kn_strbuf bytes;
    if (row == NULL) {
        return NULL;
    }
    kn_strbuf_init(&bytes, 0);
    kn_strbuf_init(&row->definitions, 0);
    row->facts = *facts;
    if (facts->computed) {
        kn_strbuf_append(&row->definitions, shape->definitions.data, shape->definitions.length);
    }
    kn_header_list_write(list, true, &bytes);
    const bool whole =
        kn_strbuf_ok(&bytes) && kn_strbuf_ok(&row->definitions) &&
        kiln_blob_create(bytes.data, bytes.length, NULL, 0, &row->blob, NULL) == KILN_OK;
    kn_strbuf_deinit(&bytes);
    if (!whole) {
        destroy_row(row);
        row = NULL;
    }
    return row;
}

void kn_walk_memo_put(kn_walk_memo *memo, const kn_walk_shape *shape, const kn_walk_facts *facts,
                      const kn_header_list *list)
{
    walk_row *row =
        memo != NULL && kn_walk_shape_exists(shape) ? make_row(shape, facts, list) : NULL;
    if (row == NULL || !kn_mutex_try(&memo->lock)) {
        destroy_row(row);
        return;
    }
    const size_t size = kiln_blob_size(row->blob) + row->definitions.length + sizeof(*row);
    void *old = NULL;
    if (size <= KN_WALK_MEMO_MAX_BYTES - memo->bytes &&
        kn_map_put(&memo->rows, shape->includes.data, shape->includes.length, row, &old)) {
        memo->bytes += size;
        row = NULL;
    }
    kn_mutex_unlock(&memo->lock);
    destroy_row(row);
    destroy_row((walk_row *)old);
}
