/* See scan_record.h. An event is a head, two texts, and a NUL after each of them. */
#include "headers/scan_record.h"

#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"

enum { NEXT = 1, PROBE = 2, QUOTED = 4, LONG = 8 };

typedef enum event_kind {
    EVENT_INCLUDE,
    EVENT_DEFINE,
    EVENT_UNDEFINE,
    EVENT_COMPUTED,
} event_kind;

typedef struct event {
    unsigned kind : 2;
    unsigned flags : 30;
    uint32_t line;
    uint32_t first, second; /* lengths */
} event;

struct kn_scan_record {
    kn_few_pieces *pieces;
    kn_scan_stop stop;
    bool raw_strings;
    size_t text_length;
    size_t length;
    char events[];
};

/* --- making ----------------------------------------------------------------------------------- */

typedef struct recorder {
    const kn_scan_reports *to;
    kn_strbuf events;
} recorder;

static void append_event(recorder *r, event_kind kind, unsigned flags, size_t line, kn_span first,
                         kn_span second)
{
    const event head = {.kind = kind,
                        .flags = flags & 0xFFu,
                        .line = (uint32_t)line,
                        .first = (uint32_t)first.length,
                        .second = (uint32_t)second.length};
    kn_strbuf_append(&r->events, &head, sizeof head);
    kn_strbuf_append(&r->events, first.data, first.length);
    kn_strbuf_append_char(&r->events, '\0');
    kn_strbuf_append(&r->events, second.data, second.length);
    kn_strbuf_append_char(&r->events, '\0');
}

static unsigned flags_of(bool next, bool probe, bool quoted)
{
    return (next ? NEXT : 0u) | (probe ? PROBE : 0u) | (quoted ? QUOTED : 0u);
}

static kiln_status record_include(void *user, const kn_include *include)
{
    recorder *r = user;
    append_event(r, EVENT_INCLUDE, flags_of(include->next, include->probe, include->quoted), 0,
                 include->name, kn_span_of("", 0));
    return r->to->visit(r->to->user, include);
}

static kiln_status record_define(void *user, kn_span name, kn_span rest)
{
    recorder *r = user;
    const bool is_long = rest.data == NULL;
    append_event(r, EVENT_DEFINE, is_long ? LONG : 0, 0, name, is_long ? kn_span_of("", 0) : rest);
    return r->to->macros->define(r->to->user, name, rest);
}

static kiln_status record_undefine(void *user, kn_span name)
{
    recorder *r = user;
    append_event(r, EVENT_UNDEFINE, 0, 0, name, kn_span_of("", 0));
    return r->to->macros->undefine(r->to->user, name);
}

static kiln_status record_computed(void *user, kn_span text, size_t line, bool next, bool probe)
{
    recorder *r = user;
    append_event(r, EVENT_COMPUTED, flags_of(next, probe, false), line, text, kn_span_of("", 0));
    return r->to->macros->computed(r->to->user, text, line, next, probe);
}

static kn_scan_record *copy_events(const kn_strbuf *events, const kn_pieces *pieces)
{
    kn_scan_record *record = NULL;
    if (kn_strbuf_ok(events)) {
        record = calloc(1, sizeof *record + events->length);
    }
    if (record == NULL) {
        return NULL;
    }
    record->length = events->length;
    memcpy(record->events, kn_strbuf_text(events), events->length);
    record->pieces = kn_pieces_pack(pieces);
    if (record->pieces == NULL) {
        free(record);
        record = NULL;
    }
    return record;
}

kiln_status kn_scan_record_make(kn_span text, bool raw_strings, const kn_scan_reports *reports,
                                kn_scan_stop *out_stop, kn_scan_record **out_record)
{
    recorder r = {.to = reports};
    kn_pieces pieces = {.marks = {.joined = false}};
    const kn_scan_macros macros = {.define = record_define,
                                   .undefine = record_undefine,
                                   .computed = record_computed,
                                   .pieces = &pieces};
    kn_strbuf_init(&r.events, 0);
    kiln_status status =
        kn_include_scan_macros(text, raw_strings, record_include, &macros, &r, out_stop);
    if (reports->macros->pieces != NULL) {
        kn_pieces_merge(reports->macros->pieces, &pieces);
    }
    const bool whole = status == KILN_OK && out_stop->why == NULL;
    *out_record = whole ? copy_events(&r.events, &pieces) : NULL;
    if (*out_record != NULL) {
        (*out_record)->stop = *out_stop;
        (*out_record)->raw_strings = raw_strings;
        (*out_record)->text_length = text.length;
    }
    kn_strbuf_deinit(&r.events);
    return status;
}

void kn_scan_record_destroy(kn_scan_record *record)
{
    if (record != NULL) {
        free(record->pieces);
    }
    free(record);
}

/* --- replaying -------------------------------------------------------------------------------- */

static kiln_status replay_event(const kn_scan_reports *to, const event *head, const char *texts)
{
    const kn_span first = kn_span_of(texts, head->first);
    const char *second = (head->flags & LONG) != 0 ? NULL : texts + head->first + 1;
    const bool next = (head->flags & NEXT) != 0, probe = (head->flags & PROBE) != 0;
    switch ((event_kind)head->kind) {
    case EVENT_INCLUDE: {
        const kn_include include = {first, (head->flags & QUOTED) != 0, next, probe};
        return to->visit(to->user, &include);
    }
    case EVENT_DEFINE:
        return to->macros->define(to->user, first, kn_span_of(second, head->second));
    case EVENT_UNDEFINE:
        return to->macros->undefine(to->user, first);
    case EVENT_COMPUTED:
        return to->macros->computed(to->user, first, head->line, next, probe);
    }
    return KILN_OK;
}

kiln_status kn_scan_record_replay(const kn_scan_record *record, const kn_scan_reports *reports,
                                  kn_scan_stop *out_stop)
{
    kiln_status status = KILN_OK;
    for (size_t at = 0; at < record->length && status == KILN_OK;) {
        event head;
        memcpy(&head, record->events + at, sizeof head);
        at += sizeof head;
        status = replay_event(reports, &head, record->events + at);
        at += (size_t)head.first + head.second + 2;
    }
    if (reports->macros->pieces != NULL) {
        kn_pieces_merge_few(reports->macros->pieces, record->pieces);
    }
    *out_stop = record->stop;
    return status;
}

size_t kn_scan_record_size(const kn_scan_record *record)
{
    return sizeof *record + record->length + sizeof *record->pieces +
           record->pieces->count * sizeof record->pieces->spots[0];
}

size_t kn_scan_record_text_length(const kn_scan_record *record)
{
    return record->text_length;
}

bool kn_scan_record_raw_strings(const kn_scan_record *record)
{
    return record->raw_strings;
}
