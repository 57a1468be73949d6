/* See scan_record.h. A kept event is a head, two texts, and a NUL after each of them. */
#include "headers/scan_record.h"

#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"

enum { NEXT = 1, PROBE = 2, QUOTED = 4, LONG = 8 };

typedef struct kept_event {
    unsigned kind : 2;
    unsigned flags : 30;
    uint32_t line;
    uint32_t text, rest; /* lengths */
} kept_event;

typedef struct recorder {
    const kn_scan_reader *to;
    kn_strbuf events;
} recorder;

static kiln_status record_event(void *user, const kn_scan_event *event)
{
    recorder *r = user;
    const bool is_long = event->kind == KN_SCAN_DEFINE && event->rest.data == NULL;
    const kn_span rest = event->rest.data != NULL ? event->rest : kn_span_of("", 0);
    const kept_event head = {.kind = event->kind & 3u,
                             .flags = (event->next ? NEXT : 0u) | (event->probe ? PROBE : 0u) |
                                      (event->quoted ? QUOTED : 0u) | (is_long ? LONG : 0u),
                             .line = event->line,
                             .text = (uint32_t)event->text.length,
                             .rest = (uint32_t)rest.length};
    kn_strbuf_append(&r->events, &head, sizeof head);
    kn_strbuf_append(&r->events, event->text.data, event->text.length);
    kn_strbuf_append_char(&r->events, '\0');
    kn_strbuf_append(&r->events, rest.data, rest.length);
    kn_strbuf_append_char(&r->events, '\0');
    return r->to->report(r->to->user, event);
}

static kn_scan_record *copy_events(const kn_strbuf *events, const kn_pieces *pieces)
{
    kn_scan_record *record =
        kn_strbuf_ok(events) ? calloc(1, sizeof *record + events->length) : NULL;
    if (record == NULL) {
        return NULL;
    }
    record->length = events->length;
    memcpy(record->events, kn_strbuf_text(events), events->length);
    record->pieces = kn_pieces_pack(pieces);
    if (record->pieces == NULL) {
        free(record);
        return NULL;
    }
    return record;
}

kiln_status kn_scan_record_make(kn_span text, bool raw_strings, const kn_scan_reader *reader,
                                kn_scan_stop *out_stop, kn_scan_record **out_record)
{
    recorder r = {.to = reader};
    kn_pieces pieces = {.marks = 0};
    const kn_scan_reader recording = {record_event, &r, true, true, &pieces};
    kn_strbuf_init(&r.events, 0);
    kiln_status status = kn_include_scan(text, raw_strings, &recording, out_stop);
    if (reader->pieces != NULL) {
        kn_pieces_merge(reader->pieces, &pieces);
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

kiln_status kn_scan_record_replay(const kn_scan_record *record, const kn_scan_reader *reader)
{
    kiln_status status = KILN_OK;
    for (size_t at = 0; at < record->length && status == KILN_OK;) {
        kept_event head;
        memcpy(&head, record->events + at, sizeof head);
        at += sizeof head;
        const char *rest = record->events + at + head.text + 1;
        const kn_scan_event event = {
            .kind = (kn_scan_kind)head.kind,
            .text = kn_span_of(record->events + at, head.text),
            .rest = kn_span_of((head.flags & LONG) != 0 ? NULL : rest, head.rest),
            .quoted = (head.flags & QUOTED) != 0,
            .next = (head.flags & NEXT) != 0,
            .probe = (head.flags & PROBE) != 0,
            .line = head.line};
        status = reader->report(reader->user, &event);
        at += (size_t)head.text + head.rest + 2;
    }
    if (reader->pieces != NULL) {
        kn_pieces_merge_few(reader->pieces, record->pieces);
    }
    return status;
}

size_t kn_scan_record_size(const kn_scan_record *record)
{
    return sizeof *record + record->length + sizeof *record->pieces +
           record->pieces->count * sizeof record->pieces->spots[0];
}
